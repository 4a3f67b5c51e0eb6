# SPDX-License-Identifier: BSD-3-Clause
"""Messages without tags, also over transports that have none: order, raw rows, levels, truncation, what waits."""

import asyncio
import random

import numpy as np
import pytest
from sides import Side, Sides

import ofipy
from ofipy import Completed

TIMEOUT = 60

pytestmark = [pytest.mark.connected, pytest.mark.untagged]


def pattern(size: int, seed: int) -> np.ndarray:
    return ((np.arange(size, dtype=np.uint64) * 31 + seed) % 249).astype(np.uint8)


def sizes(seed: int, count: int) -> list[int]:
    generator = random.Random(seed)
    return [generator.choice((0, 8, 100, 3000, 9000, 50_000)) for _ in range(count)]


# ------------------------------------------------------------------------------------------------------------- order


def send_all(side: Side, seed: int, count: int) -> None:
    ofipy.wait_all(
        [side.ep.send(pattern(size, number), side.peer) for number, size in enumerate(sizes(seed, count))],
        timeout=TIMEOUT,
    )
    side.sync()


def receive_all(side: Side, seed: int, count: int) -> None:
    for number, size in enumerate(sizes(seed, count)):
        room = np.zeros(50_000, np.uint8)
        got = side.ep.recv_into(room, side.peer).wait(timeout=TIMEOUT)
        assert got.length == size
        assert np.array_equal(room[:size], pattern(size, number))
    side.sync()


def receive_all_posted_first(side: Side, seed: int, count: int) -> None:
    rooms = [np.zeros(50_000, np.uint8) for _ in range(count)]
    receives = [side.ep.recv_into(room) for room in rooms]
    for number, size in enumerate(sizes(seed, count)):
        assert receives[number].wait(timeout=TIMEOUT).length == size
        assert np.array_equal(rooms[number][:size], pattern(size, number))
    side.sync()


@pytest.mark.parametrize("receive", [receive_all, receive_all_posted_first], ids=["late", "first"])
def test_messages_keep_their_order(sides: Sides, receive: object) -> None:
    sides.run(send_all, receive, 5, 60, progress="auto")


# ---------------------------------------------------------------------------------------------------------- raw tier


def post_sends(side: Side, count: int) -> None:
    ep = side.ep
    memory = ep.empty(8 * count, np.uint8)
    memory.view(np.uint64)[:] = np.arange(count)
    region = ep.domain.region(memory)
    ops = ep.domain.operations(count)
    ops["op"], ops["region"], ops["peer"], ops["length"] = ofipy.Op.SEND, region.id, side.peer, 8
    ops["offset"] = region.offset + 8 * np.arange(count)
    ops["context"] = np.arange(count)
    assert ep.post(ops) == count
    rows = [row for batch in collect(ep.cq, count) for row in batch]
    assert sorted(int(row["context"]) for row in rows) == list(range(count))
    assert not any(int(row["error"]) for row in rows)
    side.sync()


def collect(cq: ofipy.CompletionQueue, count: int) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    while sum(map(len, found)) < count:
        found.append(cq.wait(timeout=TIMEOUT).copy())
    return found


def post_receives(side: Side, count: int) -> None:
    ep = side.ep
    memory = ep.empty(8 * count, np.uint8)
    region = ep.domain.region(memory)
    for number in range(count):
        ep.post_recv(region[8 * number : 8 * number + 8], context=number)
    rows = [row for batch in collect(ep.cq, count) for row in batch]
    assert [int(row["context"]) for row in rows] == list(range(count))
    assert {int(row["length"]) for row in rows} == {8}
    assert all(int(row["flags"]) & Completed.RECV for row in rows)
    assert np.array_equal(memory.view(np.uint64), np.arange(count))
    side.sync()


@pytest.mark.datagrams
def test_a_batch_of_raw_operations(sides: Sides) -> None:
    sides.run(post_sends, post_receives, 50, progress="auto")


# ------------------------------------------------------------------------------------------- levels, data, truncation


def send_levels(side: Side) -> None:
    for size in 10, 5000, 60_000:
        for level in (None, "transmit", "delivery"):
            side.ep.send(pattern(size, 1), side.peer, complete=level, remote_data=size).wait(timeout=TIMEOUT)
        side.ep.send(pattern(size, 2), side.peer, flags="inject").wait(timeout=TIMEOUT)
    side.sync()


def receive_levels(side: Side) -> None:
    for size in 10, 5000, 60_000:
        for number in range(4):
            room = np.zeros(size, np.uint8)
            got = side.ep.recv_into(room, side.peer).wait(timeout=TIMEOUT)
            assert (got.length, got.remote_data) == (size, size if number < 3 else None)
            assert np.array_equal(room, pattern(size, 1 if number < 3 else 2))
    side.sync()


def test_levels_and_data(sides: Sides) -> None:
    sides.run(send_levels, receive_levels, progress="auto")


def send_long(side: Side) -> None:
    side.sync()
    side.ep.send(b"longer than that", side.peer).wait(timeout=TIMEOUT)
    side.ep.send(b"fits", side.peer).wait(timeout=TIMEOUT)
    side.sync()


def receive_short(side: Side) -> None:
    rooms = bytearray(6), bytearray(6)
    side.sync()
    receives = [side.ep.recv_into(room, side.peer) for room in rooms]
    with pytest.raises(ofipy.Truncated):
        receives[0].wait(timeout=TIMEOUT)
    assert receives[1].wait(timeout=TIMEOUT).length == 4
    assert rooms == (b"longer", b"fits\0\0")
    side.sync()


@pytest.mark.datagrams
def test_truncation(sides: Sides) -> None:
    sides.run(send_long, receive_short, progress="auto")


# ---------------------------------------------------------------------------------------------------- awaited, sleeping


def ping(side: Side) -> None:
    async def main() -> None:
        room = bytearray(8)
        for number in range(50):
            await side.ep.send(number.to_bytes(8, "little"), side.peer)
            await side.ep.recv_into(room, side.peer)
            assert int.from_bytes(room, "little") == number + 1

    asyncio.run(main())
    side.sync()


def pong(side: Side) -> None:
    room = bytearray(8)
    receive, send = side.ep.prepare_recv(room, side.peer), side.ep.prepare_send(room, side.peer)
    for _ in range(50):
        receive.start().wait(timeout=TIMEOUT)
        room[:] = (int.from_bytes(room, "little") + 1).to_bytes(8, "little")
        send.start().wait(timeout=TIMEOUT)
    side.sync()


@pytest.mark.datagrams
@pytest.mark.parametrize("progress", ["auto", "manual"])
def test_awaited_and_prepared(sides: Sides, progress: str) -> None:
    sides.run(ping, pong, progress=progress)
