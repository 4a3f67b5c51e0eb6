# SPDX-License-Identifier: BSD-3-Clause
"""A storm of connections: one process is met again and again by new endpoints of all others.

The time of one is from the address of that process to its answer: of connected endpoints the connection, of others the
first message there and back, for which the provider connects, attaches or shakes hands, whatever it does.
"""

from time import monotonic
from typing import Any

import numpy as np

import ofipy
from fabtests.scale.flows import Flows
from ofipy.pingpong.plan import Span

__all__ = ["answer_connections", "answer_messages", "storm"]

LIMIT = 60.0
LAST = b"last"


def storm(owner: ofipy.Endpoint, server: ofipy.Address, rank: int, span: Span, *, connected: bool) -> Flows:
    """Meet the server from endpoint after endpoint, of the owner's domain, until the time is over."""
    flows = Flows(np.zeros(1, np.int64))
    meet = _connect if connected else _first_message
    while monotonic() < span.end:
        with owner.domain.endpoint().enable() as endpoint:
            begin = monotonic()
            meet(endpoint, server, b"%d" % rank)
            now = monotonic()
        if span.counts(now):
            flows.counts[0] += 1
            flows.turns.add(now - begin)
    with owner.domain.endpoint().enable() as endpoint:
        meet(endpoint, server, LAST)
    return flows


def _connect(endpoint: ofipy.Endpoint, server: ofipy.Address, word: bytes) -> None:
    endpoint.connect(server, data=word).wait(timeout=LIMIT)


def _first_message(endpoint: ofipy.Endpoint, server: ofipy.Address, word: bytes) -> None:
    # With the address: not every provider tells who a message is from.
    peer = endpoint.insert(server)
    answer = endpoint.recv()
    endpoint.send(word + b" " + bytes(endpoint.address), peer).wait(timeout=LIMIT)
    answer.wait(timeout=LIMIT)


def answer_connections(listener: Any, clients: int) -> None:
    """Accept what comes until every client has ended; a client's last endpoint goes when its next one comes."""
    held: dict[bytes, ofipy.Endpoint] = {}
    while clients:
        request = listener.wait(timeout=LIMIT)
        word = bytes(request.data).rstrip(b"\0")  # some devices pad
        if word in held:
            held.pop(word).close()
        endpoint = request.accept()
        if word == LAST:
            clients -= 1
        held[word if word != LAST else b"last of %d" % clients] = endpoint
    for endpoint in held.values():
        endpoint.close()


def answer_messages(endpoint: ofipy.Endpoint, clients: int) -> None:
    """The same of first messages."""
    held: dict[bytes, ofipy.Peer] = {}
    while clients:
        message = endpoint.recv().wait(timeout=LIMIT)
        word, _, address = bytes(message.data).partition(b" ")
        if word in held:
            endpoint.av.remove(held.pop(word))
        peer = endpoint.insert(address)
        endpoint.send(b"", peer).wait(timeout=LIMIT)
        if word == LAST:
            clients -= 1
        else:
            held[word] = peer
