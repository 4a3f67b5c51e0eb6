# SPDX-License-Identifier: BSD-3-Clause
"""Loops without an endpoint: over a socket, and of the matching alone."""

import socket
from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy._base.binding import check
from ofipy._base.errors import InvalidArgument
from ofipy._base.limits import whole_number
from ofipy._base.measure_binding import ffi, lib
from ofipy.measure.arguments import single_times, view_memory, whole_count

__all__ = ["match", "socket_pingpong", "socket_stream"]


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
    outgoing, incoming = view_memory(send), view_memory(receive, writable=True)
    if len(outgoing) != len(incoming):
        raise InvalidArgument(
            f"buffers of {len(outgoing)} and {len(incoming)} bytes; as many of each are meant",
            operation="socket_pingpong",
        )
    attributes = {
        "fd": connection.fileno(),
        "first": first,
        "send_buffer": outgoing,
        "receive_buffer": incoming,
        "length": len(outgoing),
        "iterations": whole_count("iterations", iterations, "socket_pingpong"),
        "nanoseconds": single_times(nanoseconds, iterations, "socket_pingpong"),
    }
    elapsed = lib.ofp_measure_socket_pingpong(ffi.new("struct ofp_measure_socket_attr *", attributes))
    return check(elapsed, operation="socket_pingpong") / 1e9


def socket_stream(connection: socket.socket, *, first: bool, buffer: Any, messages: int) -> float:
    """What :func:`stream` does with one window, over a bare stream socket that spins.

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
    memory = view_memory(buffer, writable=not first)
    attributes = {
        "fd": connection.fileno(),
        "first": first,
        "send_buffer" if first else "receive_buffer": memory,
        "length": len(memory),
        "iterations": whole_count("messages", messages, "socket_stream"),
    }
    elapsed = lib.ofp_measure_socket_stream(ffi.new("struct ofp_measure_socket_attr *", attributes))
    return check(elapsed, operation="socket_stream") / 1e9


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
    iterations = whole_count("iterations", iterations, "match")
    elapsed = check(lib.ofp_measure_match(mode.encode(), depth, iterations), operation="match")
    return elapsed / iterations
