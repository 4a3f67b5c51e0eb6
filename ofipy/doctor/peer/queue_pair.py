# SPDX-License-Identifier: BSD-3-Clause
"""A bare queue pair between two hosts: one connection, and writes from registered memory into memory of the other side.

No protocol of messages is between the program and the device, so this is what the device and the network can do. Both
sides prove the key when they connect, and the caller says the token of the measurement. Each function raises an
``ofipy.FabricError`` when the connection breaks, or nothing moves for :data:`~ofipy.doctor.peer.sockets.PATIENCE`.
"""

import hmac
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

import ofipy
from ofipy.doctor.peer.sockets import CHUNK, PATIENCE

__all__ = ["accept_pair", "connect_pair", "lend", "listen_pair", "open_pair", "take", "write_for"]

_WINDOW = 8
_ACCESS = "local|remote_write"


@contextmanager
def listen_pair(provider: str, node: str) -> Iterator[ofipy.PassiveEndpoint[ofipy.Domain]]:
    """Listen for one connection at an address of this host."""
    listener = ofipy.listen(provider=provider, node=node or None, caps="msg|rma")
    try:
        yield listener
    finally:
        listener.close(linger=0)  # what matters was waited for


@contextmanager
def accept_pair(
    listener: ofipy.PassiveEndpoint[ofipy.Domain], token: bytes
) -> Iterator[ofipy.Endpoint[ofipy.Domain]]:
    """The connection of who knows the token; others are refused."""
    until = time.monotonic() + PATIENCE
    while True:
        request = listener.wait(timeout=max(0.0, until - time.monotonic()))
        # A transport may fill private data with zeros.
        if hmac.compare_digest(request.data[: len(token)], token):
            break
        request.reject()
    endpoint = request.accept()
    try:
        yield endpoint
    finally:
        endpoint.close(linger=0)


@contextmanager
def open_pair(provider: str, node: str) -> Iterator[ofipy.Endpoint[ofipy.Domain]]:
    """An endpoint for one connection, at an address of this host."""
    endpoint = ofipy.open(provider=provider, ep_type="msg", node=node or None, caps="msg|rma")
    try:
        yield endpoint
    finally:
        endpoint.close(linger=0)


def connect_pair(endpoint: ofipy.Endpoint[ofipy.Domain], address: str, token: bytes) -> None:
    """Connect to who listens, and say the token."""
    endpoint.connect(address, data=token).wait(timeout=PATIENCE)


@contextmanager
def lend(domain: ofipy.Domain) -> Iterator[ofipy.RemoteRegion]:
    """Memory of this side that the other one writes into, until the end of the block."""
    memory = domain.empty(CHUNK, np.uint8, access=_ACCESS)
    with domain.region(memory) as region:
        yield region.remote


def write_for(
    endpoint: ofipy.Endpoint[ofipy.Domain], remote: ofipy.RemoteRegion, seconds: float
) -> tuple[int, float]:
    """Write for a time; an empty message ends it. Returns the bytes, and the seconds until all had arrived."""
    domain, peer = endpoint.domain, endpoint.peer
    source = domain.empty(CHUNK, np.uint8, access="local")
    memory = domain.region(source)
    posted: deque[ofipy.Request] = deque()
    begin, sent = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        posted.append(endpoint.write(memory, peer, remote, complete="delivery"))
        sent += CHUNK
        if len(posted) == _WINDOW:
            posted.popleft().wait(timeout=PATIENCE)
    while posted:
        posted.popleft().wait(timeout=PATIENCE)
    taken = time.perf_counter() - begin
    # Everything has arrived. The other side may have closed before its acknowledgement of the end comes.
    with suppress(ofipy.FabricError):
        endpoint.send(b"", peer, complete="delivery").wait(timeout=PATIENCE)
    return sent, taken


def take(endpoint: ofipy.Endpoint[ofipy.Domain], most: float) -> None:
    """Wait until the other side has written everything."""
    endpoint.recv_into(bytearray(1)).wait(timeout=most)
