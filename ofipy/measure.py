# SPDX-License-Identifier: BSD-3-Clause
"""What the core costs without Python: loops in C over the public calls, for benchmarks."""

import socket
from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy._base.binding import check, ffi, lib
from ofipy._base.contents import refuse_objects
from ofipy._base.errors import InvalidArgument
from ofipy._base.limits import UINT32_MAX, UINT64_MAX, whole_number
from ofipy._memory.remote import RemoteRegion
from ofipy._objects.endpoint import Endpoint

__all__ = ["match", "pingpong", "socket_pingpong", "socket_stream", "stream", "write"]

_NUMBER_BYTES = 8


def pingpong(
    endpoint: Endpoint,
    peer: int,
    *,
    first: bool,
    send: Any,
    receive: Any,
    iterations: int,
    tag: int = 0,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """A tagged ping-pong in C; the peer calls this at the same time.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    first : bool
        Whether this side sends first.
    send, receive : contiguous buffers of one size
        What to send, and where to receive.
    iterations : int
        Round trips.
    tag : int
        Of every message.
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
    outgoing, incoming = _readable(send), _writable(receive)
    if len(outgoing) != len(incoming):
        raise InvalidArgument(f"buffers of {len(outgoing)} and {len(incoming)} bytes", operation="pingpong")
    attributes = {
        "send_buffer": outgoing,
        "receive_buffer": incoming,
        "length": len(outgoing),
        "iterations": _count("iterations", iterations, "pingpong"),
        "nanoseconds": _times(nanoseconds, iterations, "pingpong"),
    }
    return _run(lib.ofp_measure_pingpong, "pingpong", endpoint, peer, first, tag, attributes)


def stream(endpoint: Endpoint, peer: int, *, first: bool, buffer: Any, messages: int, tag: int = 0) -> float:
    """A window of tagged messages one way in C, then an empty one back; the peer calls this at the same time.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    first : bool
        Whether this side sends the window.
    buffer : contiguous buffer
        What every message sends, or where every message is received.
    messages : int
        In the window.
    tag : int
        Of every message.

    Returns
    -------
    float
        Seconds.
    """
    memory = _readable(buffer) if first else _writable(buffer)
    attributes = {
        "send_buffer" if first else "receive_buffer": memory,
        "length": len(memory),
        "iterations": _count("messages", messages, "stream"),
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
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """A ping-pong of writes in C; the peer calls this at the same time.

    Each side counts up a number of 64 bits, writes it into the other's memory and spins until the same number is in
    its own.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue that nobody else reads meanwhile.
    peer : Peer or int
        The other side.
    remote : RemoteRegion
        Its memory, of 8 bytes.
    first : bool
        Whether this side writes first.
    send : contiguous buffer of 8 bytes
        The number, the same on both sides at the start.
    landing : contiguous buffer of 8 bytes
        The memory of this side that the peer writes to; aligned.
    iterations : int
        Round trips.
    nanoseconds : ndarray of int64, shape (iterations,), optional
        Where the time of each round trip goes.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InvalidArgument
        When a size is not 8 bytes.
    """
    outgoing, incoming = _writable(send), _writable(landing)
    if not len(outgoing) == len(incoming) == remote.length == _NUMBER_BYTES:
        raise InvalidArgument(
            f"{len(outgoing)} bytes to send, {len(incoming)} to land in, {remote.length} remote: 8 are meant",
            operation="write",
        )
    attributes = {
        "send_buffer": outgoing,
        "receive_buffer": incoming,
        "length": _NUMBER_BYTES,
        "iterations": _count("iterations", iterations, "write"),
        "nanoseconds": _times(nanoseconds, iterations, "write"),
        "remote_offset": remote.offset,
        "remote_key": remote.key,
    }
    return _run(lib.ofp_measure_write, "write", endpoint, peer, first, 0, attributes)


def socket_pingpong(
    connection: socket.socket,
    *,
    first: bool,
    send: Any,
    receive: Any,
    iterations: int,
    nanoseconds: npt.NDArray[np.int64] | None = None,
) -> float:
    """What :func:`pingpong` does, over a bare stream socket that spins: what others are compared with.

    Parameters
    ----------
    connection : socket.socket
        Connected, of a stream protocol, non-blocking.
    first : bool
        Whether this side sends first.
    send, receive : contiguous buffers of one size
        What to send, and where to receive.
    iterations : int
        Round trips.
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
    FabricError
        When the connection breaks.
    """
    outgoing, incoming = _readable(send), _writable(receive)
    if len(outgoing) != len(incoming):
        raise InvalidArgument(
            f"buffers of {len(outgoing)} and {len(incoming)} bytes", operation="socket_pingpong"
        )
    attributes = {
        "fd": connection.fileno(),
        "first": first,
        "send_buffer": outgoing,
        "receive_buffer": incoming,
        "length": len(outgoing),
        "iterations": _count("iterations", iterations, "socket_pingpong"),
        "nanoseconds": _times(nanoseconds, iterations, "socket_pingpong"),
    }
    elapsed = lib.ofp_measure_socket_pingpong(ffi.new("struct ofp_measure_socket_attr *", attributes))
    return check(elapsed, operation="socket_pingpong") / 1e9


def socket_stream(connection: socket.socket, *, first: bool, buffer: Any, messages: int) -> float:
    """What :func:`stream` does, over a bare stream socket that spins.

    Parameters
    ----------
    connection : socket.socket
        Connected, of a stream protocol, non-blocking.
    first : bool
        Whether this side sends the window.
    buffer : contiguous buffer
        What every message sends, or where every message is received.
    messages : int
        In the window.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InvalidArgument
        When the buffer is empty.
    FabricError
        When the connection breaks.
    """
    memory = _readable(buffer) if first else _writable(buffer)
    attributes = {
        "fd": connection.fileno(),
        "first": first,
        "send_buffer" if first else "receive_buffer": memory,
        "length": len(memory),
        "iterations": _count("messages", messages, "socket_stream"),
    }
    elapsed = lib.ofp_measure_socket_stream(ffi.new("struct ofp_measure_socket_attr *", attributes))
    return check(elapsed, operation="socket_stream") / 1e9


def _readable(buffer: Any) -> Any:
    refuse_objects(buffer)
    return ffi.from_buffer("char[]", buffer)


def _writable(buffer: Any) -> Any:
    refuse_objects(buffer)
    return ffi.from_buffer("char[]", buffer, require_writable=True)


def _count(name: str, value: int, operation: str) -> int:
    return whole_number(name, value, 1, 2**40, operation=operation)


def _times(nanoseconds: npt.NDArray[np.int64] | None, iterations: int, operation: str) -> Any:
    """Where C puts the single times."""
    if nanoseconds is None:
        return ffi.NULL
    times = ffi.from_buffer("uint64_t[]", nanoseconds, require_writable=True)
    if len(times) < iterations:
        raise InvalidArgument(f"room for {len(times)} times of {iterations} round trips", operation=operation)
    return times


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


def match(mode: str, depth: int, *, iterations: int) -> float:
    """Time the matcher alone, without any transport.

    Parameters
    ----------
    mode : str
        ``expected``, ``unexpected``, ``same-tag``, ``any-source`` or ``masked``.
    depth : int
        Entries queued; the one posted last is matched first.
    iterations : int
        Matches to time.

    Returns
    -------
    float
        Nanoseconds of one match.
    """
    depth = whole_number("depth", depth, 1, lib.OFP_COUNT_MAX, "entries", operation="match")
    iterations = _count("iterations", iterations, "match")
    elapsed = check(lib.ofp_measure_match(mode.encode(), depth, iterations), operation="match")
    return elapsed / iterations
