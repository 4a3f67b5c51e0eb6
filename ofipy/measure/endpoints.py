# SPDX-License-Identifier: BSD-3-Clause
"""Loops over endpoints, and of prepared requests."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy._base.binding import check
from ofipy._base.errors import InvalidArgument
from ofipy._base.flags import Op, complete_flags
from ofipy._base.limits import UINT32_MAX, UINT64_MAX, whole_number
from ofipy._base.measure_binding import ffi, lib
from ofipy._completion.request import PreparedRequest
from ofipy._memory.region import Region, own_region
from ofipy._memory.remote import RemoteRegion
from ofipy._objects.endpoint import Endpoint
from ofipy.measure.arguments import single_times, view_memory, whole_count

__all__ = ["fetch_add", "pingpong", "prepared", "rma", "stream", "write"]

_NUMBER_BYTES = 8


def pingpong(
    endpoint: Endpoint,
    peer: int,
    *,
    first: bool,
    send: Any,
    receive: Any,
    iterations: int,
    tag: int | None = 0,
    receive_tag: int | None = None,
    tag_step: int = 0,
    complete: str | None = None,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """A ping-pong of messages in C; the peer calls this at the same time.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    first : bool
        Whether this side sends first.
    send, receive : contiguous buffers of one size, or regions
        What to send, and where to receive.
    iterations : int
        Round trips.
    tag : int, optional
        Of every message; None: the messages have none.
    receive_tag : int, optional
        Of every message that comes. Default: `tag`.
    tag_step : int
        What both tags grow by with each message.
    complete : str, optional
        When a send is over, as of :meth:`Endpoint.send`. Default: when its buffer is free, by injection where the
        message is short enough.
    nanoseconds : ndarray of int64, shape (iterations,), optional
        Where the time of each round trip goes.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InvalidArgument
        When the sizes differ.
    """
    outgoing, incoming = _place(endpoint, "send", send), _place(endpoint, "receive", receive, writable=True)
    if outgoing["length"] != incoming["length"]:
        raise InvalidArgument(
            f"buffers of {outgoing['length']} and {incoming['length']} bytes; as many of each are meant",
            operation="pingpong",
        )
    tag_ahead = 0
    if receive_tag is not None:
        tag_ahead = whole_number("receive_tag", receive_tag, 0, UINT64_MAX, operation="pingpong") - (tag or 0)
    attributes = {
        **outgoing,
        **incoming,
        "iterations": whole_count("iterations", iterations, "pingpong"),
        "nanoseconds": single_times(nanoseconds, iterations, "pingpong"),
        "untagged": tag is None,
        "tag_step": whole_number("tag_step", tag_step, 0, UINT64_MAX, operation="pingpong"),
        "tag_ahead": tag_ahead % 2**64,
        "flags": complete_flags(complete),
    }
    return _run(lib.ofp_measure_pingpong, "pingpong", endpoint, peer, first, tag or 0, attributes)


def stream(
    endpoint: Endpoint,
    peer: int,
    *,
    first: bool,
    buffer: Any,
    messages: int,
    windows: int = 1,
    tag: int = 0,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """Windows of tagged messages one way in C, an empty one back behind each; the peer calls this at the same time.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    first : bool
        Whether this side sends the windows.
    buffer : contiguous buffer
        What every message sends, or where every message is received.
    messages : int
        In a window.
    windows : int
        One after the other.
    tag : int
        Of every message.
    nanoseconds : ndarray of int64, shape (windows,), optional
        Where the time of each window goes.

    Returns
    -------
    float
        Seconds.
    """
    memory = view_memory(buffer, writable=not first)
    attributes = {
        "send_buffer" if first else "receive_buffer": memory,
        "length": len(memory),
        "depth": whole_number("messages", messages, 1, lib.OFP_COUNT_MAX, operation="stream"),
        "iterations": whole_count("windows", windows, "stream"),
        "nanoseconds": single_times(nanoseconds, windows, "stream"),
    }
    return _run(lib.ofp_measure_stream, "stream", endpoint, peer, first, tag, attributes)


def write(
    endpoint: Endpoint,
    peer: int,
    remote: RemoteRegion,
    *,
    first: bool,
    send: Any,
    landing: Any,
    iterations: int,
    complete: str | None = None,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """A ping-pong of writes in C; the peer calls this at the same time.

    Each side counts up a number of 64 bits at the end of a buffer, writes the buffer into the other's memory and spins
    until the same number is in its own.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    remote : RemoteRegion
        Its memory.
    first : bool
        Whether this side writes first.
    send : contiguous buffer, or region
        As long as that memory. The number is the same on both sides at the start; where the length is no multiple of
        8 bytes it is the last byte alone.
    landing : contiguous buffer
        The memory of this side that the peer writes to, as long; aligned where the number has 64 bits.
    iterations : int
        Round trips.
    complete : str, optional
        When a write is over, as of :meth:`Endpoint.write`. Default: when its buffer is free, by injection where it is
        short enough.
    nanoseconds : ndarray of int64, shape (iterations,), optional
        Where the time of each round trip goes.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InvalidArgument
        When the sizes differ, or are 0.
    """
    outgoing = _place(endpoint, "send", send, writable=True)
    incoming = _place(endpoint, "receive", landing, writable=True)
    sizes = outgoing["length"], incoming["length"], remote.length
    if len(set(sizes)) > 1 or not sizes[0]:
        raise InvalidArgument(
            f"{sizes[0]} bytes to send, {sizes[1]} to land in, {sizes[2]} remote: as many of each are meant, "
            "at least 1",
            operation="write",
        )
    attributes = {
        **outgoing,
        **incoming,
        "iterations": whole_count("iterations", iterations, "write"),
        "nanoseconds": single_times(nanoseconds, iterations, "write"),
        "remote_offset": remote.offset,
        "remote_key": remote.key,
        "flags": complete_flags(complete),
    }
    return _run(lib.ofp_measure_write, "write", endpoint, peer, first, 0, attributes)


def fetch_add(
    endpoint: Endpoint,
    peer: int,
    remote: RemoteRegion,
    *,
    iterations: int,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """Add 1 to a number of the peer's, again and again, in C; the peer calls nothing.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        Whose memory.
    remote : RemoteRegion
        The number, of 8 bytes.
    iterations : int
        How often; each time the completion is taken.
    nanoseconds : ndarray of int64, shape (iterations,), optional
        Where the time of each goes.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InvalidArgument
        When the memory is not of 8 bytes.
    """
    if remote.length != _NUMBER_BYTES:
        raise InvalidArgument(f"{remote.length} bytes of remote memory; 8 are meant", operation="fetch_add")
    attributes = {
        "iterations": whole_count("iterations", iterations, "fetch_add"),
        "nanoseconds": single_times(nanoseconds, iterations, "fetch_add"),
        "remote_offset": remote.offset,
        "remote_key": remote.key,
    }
    return _run(lib.ofp_measure_fetch_add, "fetch_add", endpoint, peer, True, 0, attributes)


def rma(
    endpoint: Endpoint,
    peer: int,
    remote: RemoteRegion,
    *,
    reads: bool,
    local: Any,
    iterations: int,
    depth: int = 1,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """Writes, each delivered, or reads in C; the peer does nothing.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    remote : RemoteRegion
        Its memory.
    reads : bool
        Reads, rather than writes.
    local : contiguous buffer, or region
        What to write from or read into, as long as that memory.
    iterations : int
        How many.
    depth : int
        How many at once.
    nanoseconds : ndarray of int64, shape (iterations,), optional
        Where the time from the end of one to the end of the next goes: of each, where there is one at once.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InvalidArgument
        When the sizes differ.
    """
    place = _place(endpoint, "receive" if reads else "send", local, writable=reads)
    if place["length"] != remote.length:
        raise InvalidArgument(
            f"{place['length']} bytes here, {remote.length} remote; as many of each are meant",
            operation="rma",
        )
    attributes = {
        **place,
        "op": Op.READ.value if reads else Op.WRITE.value,
        "flags": complete_flags(None if reads else "delivery"),
        "iterations": whole_count("iterations", iterations, "rma"),
        "depth": whole_number("depth", depth, 1, lib.OFP_COUNT_MAX, operation="rma"),
        "nanoseconds": single_times(nanoseconds, iterations, "rma"),
        "remote_offset": remote.offset,
        "remote_key": remote.key,
    }
    return _run(lib.ofp_measure_rma, "rma", endpoint, peer, True, 0, attributes)


def _place(endpoint: Endpoint, role: str, memory: Any, *, writable: bool = False) -> dict[str, Any]:
    """What the loops are told of a buffer, or of a region, whose `role` is "send" or "receive"."""
    if not isinstance(memory, Region):
        view = view_memory(memory, writable=writable)
        return {f"{role}_buffer": view, "length": len(view)}
    region = own_region(memory, endpoint.domain, "measure")
    view = view_memory(region.array, writable=writable)
    return {
        f"{role}_buffer": view,
        f"{role}_region": region.id,
        f"{role}_offset": region.offset,
        "length": region.length,
    }


def _run(
    loop: Any,
    operation: str,
    endpoint: Endpoint,
    peer: int,
    first: bool,
    tag: int,
    attributes: dict[str, Any],
) -> float:
    """Run a loop over an endpoint; its buffers are held by `attributes` until it ends."""
    every = attributes | {
        "endpoint": endpoint._pointer(operation),
        "cq": endpoint.cq._pointer(operation),
        "peer": whole_number("peer", peer, 0, UINT32_MAX, operation=operation),
        "first": first,
        "tag": whole_number("tag", tag, 0, UINT64_MAX, operation=operation),
    }
    elapsed = loop(ffi.new("struct ofp_measure_attr *", every))
    return check(elapsed, operation=operation, provider=endpoint.provider) / 1e9


def prepared(*requests: PreparedRequest, iterations: int) -> float:
    """Start prepared requests in their order, and wait for all, again and again, in C.

    Parameters
    ----------
    *requests : PreparedRequest
        Not running, and nobody else waits for them. Of a collective, all members do the same.
    iterations : int
        How often.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    FabricError
        As an operation ended.
    """
    iterations = whole_count("iterations", iterations, "prepared")
    handles = ffi.new("int64_t[]", [request._handle for request in requests])
    elapsed = lib.ofp_measure_prepared(handles, len(requests), iterations)
    return check(elapsed, operation="prepared") / 1e9
