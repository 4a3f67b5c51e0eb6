# SPDX-License-Identifier: BSD-3-Clause
"""Awaiting: completion, many tasks, iteration, cancellation that loses nothing."""

import asyncio
import gc
import random
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from sides import Side, Sides

import ofipy

TIMEOUT = 30

OpenEndpoint = Callable[..., ofipy.Endpoint]


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run under a deadline, with asyncio's own checks on."""

    async def bounded() -> Any:
        async with asyncio.timeout(TIMEOUT):
            return await main

    return asyncio.run(bounded(), debug=True)


@pytest.fixture(params=["manual", "auto"])
def ep(request: pytest.FixtureRequest, open_endpoint: OpenEndpoint) -> ofipy.Endpoint:
    return open_endpoint(progress=request.param)


def test_await(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def main() -> None:
        for size in (0, 8, 5000, 300_000):
            data, room = np.full(size, size % 251, np.uint8), np.zeros(size, np.uint8)
            receive = ep.trecv_into(room, me, tag=size)
            send = ep.tsend(data, me, tag=size)
            assert await receive is receive
            await send
            assert receive.length == size
            assert np.array_equal(room, data)
            assert await receive is receive

    run(main())


def test_failures_come_out_of_await(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def main() -> None:
        receive = ep.trecv_into(bytearray(2), me, tag=1)
        waiting = asyncio.ensure_future(_await(receive))
        await asyncio.sleep(0)
        await ep.tsend(b"too long", me, tag=1)
        with pytest.raises(ofipy.Truncated):
            await waiting

    run(main())


async def _await(request: ofipy.Request) -> Any:
    return await request


def test_many_tasks(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def receiver(tag: int) -> int:
        room, total = np.zeros(1, np.uint64), 0
        for _ in range(50):
            await ep.trecv_into(room, me, tag=tag)
            total += int(room[0])
        return total

    async def sender(tag: int) -> None:
        for number in range(50):
            await ep.tsend(np.array([number * tag], np.uint64), me, tag=tag)
            if number % 7 == 0:
                await asyncio.sleep(0)

    async def main() -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(receiver(tag)) for tag in range(40)]
            for tag in range(40):
                group.create_task(sender(tag))
        return [task.result() for task in tasks]

    assert run(main()) == [1225 * tag for tag in range(40)]


def play(side: Side, rounds: int, size: int) -> None:
    async def main() -> None:
        room = np.zeros(size, np.uint8)
        for number in range(rounds):
            if side.first:
                await side.ep.tsend(np.full(size, number % 251, np.uint8), side.peer, tag=1)
            await side.ep.trecv_into(room, side.peer, tag=1)
            assert (room == number % 251).all()
            if not side.first:
                await side.ep.tsend(room, side.peer, tag=1)

    run(main())


@pytest.mark.parametrize(("rounds", "size"), [(500, 8), (50, 300_000)])
@pytest.mark.parametrize("progress", ["manual", "auto"])
def test_between_two_sides(sides: Sides, rounds: int, size: int, progress: str) -> None:
    sides.run(play, play, rounds, size, progress=progress)


def test_two_event_loops_one_after_the_other(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def main() -> None:
        room = bytearray(1)
        receive = ep.trecv_into(room, me, tag=1)
        waiting = asyncio.ensure_future(_await(receive))
        await asyncio.sleep(0.01)
        await ep.tsend(b"x", me, tag=1)
        await waiting

    run(main())
    run(main())


# ------------------------------------------------------------------------------------------------------- unknown sizes


def test_iteration(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def send() -> None:
        for number in range(300):
            await ep.tsend(bytes(number * 37), me, tag=7)
            if number % 50 == 0:
                await asyncio.sleep(0.001)

    async def main() -> None:
        task, lengths = asyncio.create_task(send()), []
        async for message in ep.messages(tag=7):
            assert message.source == me
            lengths.append(message.length)
            if len(lengths) == 300:
                break
        await task
        assert lengths == [number * 37 for number in range(300)]

    run(main())


@pytest.mark.parametrize("seed", range(3))
def test_cancellation_loses_no_message(ep: ofipy.Endpoint, me: ofipy.Peer, seed: int) -> None:
    """Receives are cancelled at random moments; every message still comes out once."""
    generator, count = random.Random(seed), 200

    async def send() -> None:
        for number in range(count):
            size = generator.choice((8, 200, 5000, 200_000))
            await ep.tsend(number.to_bytes(8, "little") + bytes(size), me, tag=1)
            if generator.random() < 0.3:
                await asyncio.sleep(0)

    async def main() -> list[int]:
        task, got = asyncio.create_task(send()), []
        while len(got) < count:
            receive = asyncio.create_task(_await(ep.trecv(tag=1)))
            for _ in range(generator.randrange(4)):
                await asyncio.sleep(0)
            if generator.random() < 0.5:
                receive.cancel()
            try:
                got.append(int.from_bytes((await receive).data[:8], "little"))
            except asyncio.CancelledError:
                continue
        await task
        return got

    assert sorted(run(main())) == list(range(count))
    gc.collect()
    assert ep.stats().posted_receives == 0


def test_timeout_of_a_receive(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await ep.trecv(tag=1)
        await ep.tsend(b"later", me, tag=1)
        assert (await ep.trecv(tag=1)).data == b"later"

    run(main())


def test_cancelled_receive_into_memory_takes_nothing(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def main() -> None:
        rooms = bytearray(4), bytearray(4)
        task = asyncio.create_task(_await(ep.trecv_into(rooms[0], me, tag=1)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await ep.tsend(b"kept", me, tag=1)
        await ep.trecv_into(rooms[1], me, tag=1)
        assert rooms == (bytes(4), b"kept")

    run(main())


def test_close_ends_what_is_awaited(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()

    async def main() -> None:
        task = asyncio.create_task(_await(ep.trecv_into(bytearray(4), tag=1)))
        await asyncio.sleep(0.01)
        ep.close()
        with pytest.raises(ofipy.Canceled):
            await task

    run(main())


def test_other_completions_in_the_queue_do_not_block(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(8))

    async def main() -> None:
        ep.post_tsend(region, me, tag=5, context=1)
        task = asyncio.create_task(_await(ep.trecv_into(bytearray(8), me, tag=1)))
        await asyncio.sleep(0.01)
        await ep.tsend(b"x", me, tag=1)
        await task
        assert list(ep.cq.read()["context"]) == [1]

    run(main())
