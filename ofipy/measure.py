# SPDX-License-Identifier: BSD-3-Clause
"""What the core costs without Python: loops in C over the public calls, for benchmarks."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy._binding import check, ffi, lib
from ofipy._endpoint import Endpoint
from ofipy._errors import InvalidArgument

__all__ = ["match", "pingpong"]


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
    outgoing, incoming = (
        ffi.from_buffer("char[]", send),
        ffi.from_buffer("char[]", receive, require_writable=True),
    )
    if len(outgoing) != len(incoming):
        raise InvalidArgument(f"buffers of {len(outgoing)} and {len(incoming)} bytes", operation="pingpong")
    times = ffi.NULL
    if nanoseconds is not None:
        times = ffi.from_buffer("uint64_t[]", nanoseconds, require_writable=True)
        if len(times) < iterations:
            raise InvalidArgument(
                f"room for {len(times)} times of {iterations} round trips", operation="pingpong"
            )
    attributes = ffi.new(
        "struct ofp_measure_attr *",
        {
            "endpoint": endpoint._pointer("pingpong"),
            "cq": endpoint.cq._pointer("pingpong"),
            "peer": peer,
            "first": first,
            "tag": tag,
            "send_buffer": outgoing,
            "receive_buffer": incoming,
            "length": len(outgoing),
            "iterations": iterations,
            "nanoseconds": times,
        },
    )
    elapsed = lib.ofp_measure_pingpong(attributes)
    return check(elapsed, operation="pingpong", provider=endpoint.provider) / 1e9


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
    elapsed = check(lib.ofp_measure_match(mode.encode(), depth, iterations), operation="match")
    return elapsed / iterations
