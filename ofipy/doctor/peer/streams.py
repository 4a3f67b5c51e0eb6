# SPDX-License-Identifier: BSD-3-Clause
"""A stream of large messages over an endpoint, for the bandwidth of a provider."""

import time
from collections import deque

import ofipy
from ofipy._discovery.av import Peer
from ofipy.doctor.peer.sockets import CHUNK, PATIENCE
from ofipy.doctor.peer.wire import TAG_STREAM

__all__ = ["receive_messages", "send_messages"]

_WINDOW = 8


def send_messages(endpoint: ofipy.Endpoint[ofipy.Domain], peer: Peer, seconds: float) -> int:
    """Send for a time; an empty message ends it. Returns the bytes.

    Raises
    ------
    ofipy.FabricError
        When the peer is lost, or takes nothing for :data:`PATIENCE`.
    """
    chunk = bytes(CHUNK)
    posted: deque[ofipy.Request] = deque()
    until = time.perf_counter() + seconds
    sent = 0
    try:
        while time.perf_counter() < until:
            posted.append(endpoint.tsend(chunk, peer, tag=TAG_STREAM))
            sent += CHUNK
            if len(posted) == _WINDOW:
                posted.popleft().wait(timeout=PATIENCE)
        posted.append(endpoint.tsend(b"", peer, tag=TAG_STREAM))
        while posted:
            posted.popleft().wait(timeout=PATIENCE)
    finally:
        for each in posted:
            each.cancel()
    return sent


def receive_messages(endpoint: ofipy.Endpoint[ofipy.Domain], peer: Peer, most: float) -> int:
    """Receive until the empty message. Returns the bytes.

    Raises
    ------
    ofipy.FabricError
        When the peer is lost, sends nothing for :data:`PATIENCE`, or does not end in `most` seconds.
    """
    posted = deque(
        (endpoint.trecv_into(buffer, peer, tag=TAG_STREAM), buffer)
        for buffer in (bytearray(CHUNK) for _ in range(_WINDOW))
    )
    until = time.monotonic() + most
    received = 0
    try:
        while True:
            request, buffer = posted[0]
            request.wait(timeout=PATIENCE)
            posted.popleft()
            if not request.length:
                return received
            received += request.length
            if time.monotonic() > until:
                raise ofipy.TimedOut("the peer does not end its stream", operation="doctor")
            posted.append((endpoint.trecv_into(buffer, peer, tag=TAG_STREAM), buffer))
    finally:
        for request, _ in posted:
            request.cancel()
