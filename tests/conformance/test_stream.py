# SPDX-License-Identifier: BSD-3-Clause
"""Long random conversations: every byte of every message is checked on the other side."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sides import Side, Sides, Target

import ofipy

pytestmark = pytest.mark.connected

TIMEOUT = 60
SIZES = (0, 1, 7, 31, 32, 33, 95, 96, 97, 500, 4095, 4096, 4097, 16_384, 16_385, 65_536, 262_145, 1_500_000)

OpenEndpoint = Callable[..., ofipy.Endpoint]


def script(seed: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Size, tag and content of each message; both sides know it."""
    generator = random.Random(seed)
    for number in range(count):
        size = generator.choice(SIZES[: 12 if generator.random() < 0.9 else None])
        yield size, generator.randrange(4), number


def content(size: int, number: int) -> np.ndarray:
    return (np.arange(size, dtype=np.uint32) * 31 + number * 7919).astype(np.uint8)


def talk(side: Side, seed: int, count: int) -> None:
    """Send one script and receive the other, in windows, in several ways, both directions at once."""
    ep, peer = side.ep, side.peer
    generator = random.Random(seed * 2 + side.first)
    outgoing = list(script(seed + side.first, count))
    incoming = list(script(seed + (not side.first), count))
    sends: list[ofipy.Request] = []
    receives: list[tuple[ofipy.Request, Any, int, int]] = []
    mapped = ep.empty(2_000_000, np.uint8)
    while outgoing or incoming or receives:
        for _ in range(generator.randrange(20)):
            if outgoing:
                size, tag, number = outgoing.pop(0)
                sends.append(ep.tsend(memory_of(generator, ep, content(size, number)), peer, tag=tag))
        for _ in range(generator.randrange(20)):
            if incoming:
                size, tag, number = incoming.pop(0)
                if generator.random() < 0.3 and not ep.info.offloads_matching:
                    receives.append((ep.trecv(peer, tag=tag), None, size, number))
                else:
                    room = np.zeros(size + generator.randrange(3), np.uint8)
                    receives.append((ep.trecv_into(room, peer, tag=tag), room, size, number))
        for request, room, size, number in receives[: generator.randrange(25)]:
            # Waiting for more than was sent oneself could have both sides wait for each other.
            if number >= count - len(outgoing):
                break
            got = request.wait(timeout=TIMEOUT)
            assert got.length == size
            data = np.frombuffer(got.data, np.uint8) if room is None else room[:size]
            assert np.array_equal(data, content(size, number)), (size, number)
            receives.pop(0)
        sends = [send for send in sends if not send.done]
    ofipy.wait_all(sends, timeout=TIMEOUT)
    del mapped
    side.sync()


def memory_of(generator: random.Random, ep: ofipy.Endpoint, data: np.ndarray) -> Any:
    """The same bytes in another kind of memory."""
    kind = generator.randrange(5)
    if kind == 0:
        return data.tobytes()
    if kind == 1:
        return bytearray(data)
    if kind == 2 and len(data) > 10:
        return [data[:3], data[3:-2].copy(), data[-2:].tobytes()]
    if kind == 3 and len(data) >= 4096:
        mapped = ep.empty(len(data))
        mapped[:] = data
        return mapped
    return data


@pytest.mark.parametrize("progress", ["manual", "auto"])
@pytest.mark.parametrize("seed", [10, 20, 30])
def test_conversation(sides: Sides, seed: int, progress: str) -> None:
    sides.run(talk, talk, seed, 400, progress=progress, timeout=120)


def test_everybody_talks_to_everybody(open_endpoint: OpenEndpoint, target: Target) -> None:
    first = open_endpoint()
    endpoints = [open_endpoint(first.domain, cq=first.cq, av=first.av) for _ in range(6)]
    peers = [first.insert(each.address) for each in endpoints]
    requests: list[ofipy.Request] = []
    rooms = {}
    for number in range(20):
        for sender, its_endpoint in enumerate(endpoints):
            for receiver, its_peer in enumerate(peers):
                size = SIZES[(number * 7 + sender * 3 + receiver) % 14]
                requests.append(its_endpoint.tsend(content(size, number + sender), its_peer, tag=number))
                room = rooms[number, sender, receiver] = np.zeros(size, np.uint8)
                requests.append(endpoints[receiver].trecv_into(room, peers[sender], tag=number))
    ofipy.wait_all(requests, timeout=TIMEOUT)
    for (number, sender, _), room in rooms.items():
        assert np.array_equal(room, content(len(room), number + sender))


def test_many_peers(open_endpoint: OpenEndpoint) -> None:
    """One server and a hundred clients that it has never heard of."""
    server = open_endpoint()
    clients = [open_endpoint(server.domain, cq=server.cq) for _ in range(100)]
    for number, client in enumerate(clients):
        client.tsend(number.to_bytes(2, "little"), client.insert(server.address), tag=1)
    seen = set()
    for _ in clients:
        room = bytearray(2)
        got = server.trecv_into(room, tag=1).wait(timeout=TIMEOUT)
        number = int.from_bytes(room, "little")
        assert got.source.address.same_endpoint(clients[number].address)
        receive = clients[number].trecv_into(answer := bytearray(2), tag=2)
        server.tsend(room, got.source, tag=2).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        assert answer == room
        seen.add(number)
    assert seen == set(range(100))
