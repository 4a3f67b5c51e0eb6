# SPDX-License-Identifier: BSD-3-Clause
"""The loops in C move what they are timed for."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ofipy

Sides = list[tuple[ofipy.Endpoint, ofipy.Peer]]


@pytest.fixture
def sides() -> Iterator[Sides]:
    """Two endpoints and how each knows the other."""
    with ofipy.open(provider="shm") as first, ofipy.open(provider="shm") as second:
        yield [(first, first.insert(second.address)), (second, second.insert(first.address))]


def both(run: Callable[[bool], float]) -> None:
    with ThreadPoolExecutor() as pool:
        seconds = list(pool.map(run, (True, False), timeout=60))
    assert min(seconds) > 0


@pytest.mark.parametrize("size", [0, 8, 100_000])
def test_a_ping_pong_goes_both_ways(sides: Sides, size: int) -> None:
    out = [np.full(size, value, dtype=np.uint8) for value in (1, 2)]
    into = [np.zeros(size, dtype=np.uint8) for _ in sides]
    times = np.zeros(20, dtype=np.int64)

    def run(first: bool) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.pingpong(
            endpoint, peer, first=first, send=out[not first], receive=into[not first], iterations=20,
            nanoseconds=times if first else None,
        )  # fmt: skip

    both(run)
    assert (into[0] == 2).all()
    assert (into[1] == 1).all()
    assert (times > 0).all()


@pytest.mark.parametrize("size", [0, 8, 100_000])
@pytest.mark.parametrize("messages", [1, 64, 150])
def test_a_window_goes_one_way(sides: Sides, size: int, messages: int) -> None:
    buffers = [np.full(size, 1, dtype=np.uint8), np.zeros(size, dtype=np.uint8)]

    def run(first: bool) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.stream(
            endpoint, peer, first=first, buffer=buffers[not first], messages=messages, tag=3
        )

    for _ in range(2):
        both(run)
    assert (buffers[1] == 1).all()
    for endpoint, _ in sides:
        assert len(endpoint.cq.read()) == 0  # nothing was left behind


@pytest.fixture
def connections() -> Iterator[list[socket.socket]]:
    pair = socket.socketpair()
    for each in pair:
        each.setblocking(False)
    yield list(pair)
    for each in pair:
        each.close()


def test_a_ping_pong_over_a_socket(connections: list[socket.socket]) -> None:
    out = [np.full(300_000, value, dtype=np.uint8) for value in (1, 2)]
    into = [np.zeros(300_000, dtype=np.uint8) for _ in connections]
    times = np.zeros(20, dtype=np.int64)

    def run(first: bool) -> float:
        return ofipy.measure.socket_pingpong(
            connections[not first], first=first, send=out[not first], receive=into[not first],
            iterations=20, nanoseconds=times if first else None,
        )  # fmt: skip

    both(run)
    assert (into[0] == 2).all()
    assert (into[1] == 1).all()
    assert (times > 0).all()


@pytest.mark.parametrize("size", [1, 7, 300_000])
@pytest.mark.parametrize("messages", [1, 64, 150])
def test_a_window_over_a_socket(connections: list[socket.socket], size: int, messages: int) -> None:
    buffers = [np.arange(size).astype(np.uint8), np.zeros(size, dtype=np.uint8)]

    def run(first: bool) -> float:
        return ofipy.measure.socket_stream(
            connections[not first], first=first, buffer=buffers[not first], messages=messages
        )

    for _ in range(2):
        both(run)
    assert (buffers[1] == buffers[0]).all()  # the boundaries were kept
    for each in connections:
        with pytest.raises(BlockingIOError):
            each.recv(1)


@pytest.mark.parametrize("first", [True, False])
def test_a_broken_connection_ends_the_loop(connections: list[socket.socket], first: bool) -> None:
    connections[1].close()
    byte = np.zeros(1, dtype=np.uint8)
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.socket_stream(connections[0], first=first, buffer=byte, messages=1)
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.socket_pingpong(connections[0], first=first, send=byte, receive=byte, iterations=1)


def test_an_empty_message_over_a_socket_is_refused(connections: list[socket.socket]) -> None:
    empty, byte = np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.socket_stream(connections[0], first=True, buffer=empty, messages=1)
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.socket_pingpong(connections[0], first=True, send=byte, receive=empty, iterations=1)


def test_sizes_and_room_are_checked(sides: Sides) -> None:
    endpoint, peer = sides[0]
    eight, nine = np.zeros(8, dtype=np.uint8), np.zeros(9, dtype=np.uint8)
    with pytest.raises(ofipy.InvalidArgument, match="8 and 9 bytes"):
        ofipy.measure.pingpong(endpoint, peer, first=True, send=eight, receive=nine, iterations=1)
    with pytest.raises(ofipy.InvalidArgument, match="room for 1 times of 2"):
        ofipy.measure.pingpong(
            endpoint, peer, first=True, send=eight, receive=eight, iterations=2,
            nanoseconds=np.zeros(1, dtype=np.int64),
        )  # fmt: skip
    with pytest.raises(BufferError):
        ofipy.measure.stream(endpoint, peer, first=False, buffer=b"read only", messages=1)


def test_writes_count_up_on_both_sides(sides: Sides) -> None:
    lent = [endpoint.empty(8, np.uint8, access="local|remote_write") for endpoint, _ in sides]
    handles = [
        endpoint.domain.region(memory).remote for (endpoint, _), memory in zip(sides, lent, strict=True)
    ]
    out = [np.zeros(8, dtype=np.uint8) for _ in sides]
    times = np.zeros(20, dtype=np.int64)
    for memory in lent:
        memory.fill(0)

    def run(first: bool) -> float:
        endpoint, peer = sides[not first]
        return ofipy.measure.write(
            endpoint, peer, handles[first], first=first, send=out[not first], landing=lent[not first],
            iterations=20, nanoseconds=times if first else None,
        )  # fmt: skip

    for number in (20, 40):
        both(run)
        assert [int(memory.view(np.uint64)[0]) for memory in lent] == [number, number]
    assert (times > 0).all()


def test_a_refused_write_ends_the_loop(sides: Sides) -> None:
    (endpoint, peer), (other, _) = sides
    region = other.register(np.zeros(8, dtype=np.uint8), access="remote_write")
    handle = region.remote
    region.close()
    number, landing = np.zeros((2, 8), dtype=np.uint8)
    with pytest.raises(ofipy.FabricError):
        ofipy.measure.write(endpoint, peer, handle, first=True, send=number, landing=landing, iterations=1)


def test_writes_are_of_eight_bytes(sides: Sides) -> None:
    endpoint, peer = sides[0]
    memory = endpoint.empty(16, np.uint8, access="local|remote_write")
    handle = endpoint.domain.region(memory).remote
    with pytest.raises(ofipy.InvalidArgument, match="8 are meant"):
        ofipy.measure.write(endpoint, peer, handle, first=True, send=memory, landing=memory, iterations=1)
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.measure.write(
            endpoint, peer, handle[:8], first=True, send=memory[:8], landing=memory[1:9], iterations=1
        )
