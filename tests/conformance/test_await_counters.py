# SPDX-License-Identifier: BSD-3-Clause
"""Awaiting values of counters."""

import asyncio
import select
import threading
import time
from collections.abc import Callable

import pytest
from sides import Side, Sides
from test_asyncio import run

import ofipy

TIMEOUT = 20

OpenEndpoint = Callable[..., ofipy.Endpoint]


@pytest.fixture(params=["manual", "auto"])
def ep(request: pytest.FixtureRequest, open_endpoint: OpenEndpoint) -> ofipy.Endpoint:
    return open_endpoint(progress=request.param)


def test_values_in_any_order(ep: ofipy.Endpoint) -> None:
    counter = ep.domain.counter()
    seen: list[int] = []

    async def wait(threshold: int) -> None:
        await counter.reached(threshold)
        seen.append(threshold)

    async def main() -> None:
        await counter.reached(0)
        tasks = [asyncio.create_task(wait(threshold)) for threshold in (4, 1, 3, 1, 2)]
        await asyncio.sleep(0)
        for value in range(1, 5):
            counter.set(value)
            while len(seen) < value + 1:
                await asyncio.sleep(0)
            assert seen == [1, 1, 2, 3, 4][: value + 1]
        await asyncio.gather(*tasks)

    run(main())


def await_messages(side: Side, rounds: int) -> None:
    domain = side.ep.domain
    counter = domain.counter()
    ep = domain.endpoint(counters={"recv": counter}).enable()
    side.ep.tsend(bytes(ep.address), side.peer, tag=1).wait(timeout=TIMEOUT)

    async def main() -> None:
        receives = [ep.trecv_into(bytearray(8), tag=2) for _ in range(rounds)]
        for number in range(rounds):
            await counter.reached(number + 1)
            assert counter.value == number + 1
            # Only now the next one is sent.
            await side.ep.tsend(b"next", side.peer, tag=3)
        for receive in receives:
            assert receive.done

    run(main())
    side.sync()
    ep.close()


def send_one_by_one(side: Side, rounds: int) -> None:
    room = bytearray(256)
    length = side.ep.trecv_into(room, side.peer, tag=1).wait(timeout=TIMEOUT).length
    peer = side.ep.insert(bytes(room[:length]))
    for _ in range(rounds):
        side.ep.tsend(b"message", peer, tag=2).wait(timeout=TIMEOUT)
        side.ep.trecv_into(bytearray(4), side.peer, tag=3).wait(timeout=TIMEOUT)
    side.sync()


def test_messages_of_the_other_side(sides: Sides) -> None:
    sides.run(await_messages, send_one_by_one, 100)


def test_sleeping_takes_no_processor_time(ep: ofipy.Endpoint) -> None:
    counter = ep.domain.counter()

    async def main() -> tuple[int, float]:
        task = asyncio.create_task(counter.reached(1))
        await asyncio.sleep(0.1)
        looks, used, began = ep.stats().progress_calls, time.process_time(), time.monotonic()
        await asyncio.sleep(0.3)
        used = (time.process_time() - used) / (time.monotonic() - began)
        looks = ep.stats().progress_calls - looks
        counter.add(1)
        await task
        return looks, used

    looks, used = run(main())
    assert used < 0.1
    # A transport without a descriptor is looked at by the clock.
    assert looks < 50 or not ep.info.wait_fd


def test_failures_are_told_once(ep: ofipy.Endpoint) -> None:
    counter = ep.domain.counter()

    async def main() -> None:
        tasks = [asyncio.create_task(counter.reached(1)) for _ in range(2)]
        await asyncio.sleep(0)
        counter.add_error()
        for task in tasks:
            with pytest.raises(ofipy.FabricError, match="error value is 1, it was 0"):
                await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await counter.reached(1)
        counter.add_error()
        with pytest.raises(ofipy.FabricError, match="error value is 2, it was 1"):
            await counter.reached(1)

    run(main())


def test_cancelling_leaves_the_others(ep: ofipy.Endpoint) -> None:
    counter = ep.domain.counter()

    async def main() -> None:
        first, second = (asyncio.create_task(counter.reached(threshold)) for threshold in (1, 2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        counter.add(2)
        await second

    run(main())
    run(counter.reached(2))


@pytest.mark.parametrize("what", ["counter", "fabric"])
def test_closing_ends_it(ep: ofipy.Endpoint, what: str) -> None:
    counter = ep.domain.counter()

    async def main() -> None:
        task = asyncio.create_task(counter.reached(1))
        await asyncio.sleep(0)
        (counter if what == "counter" else ep.fabric).close()
        with pytest.raises(ofipy.Canceled):
            await task
        with pytest.raises(ofipy.Closed):
            await counter.reached(1)

    run(main())


@pytest.mark.parametrize("end", ["value", "close"])
def test_loops_in_several_threads(ep: ofipy.Endpoint, end: str) -> None:
    counter = ep.domain.counter()
    begun = threading.Barrier(5)
    failed: list[BaseException] = []

    async def wait(threshold: int) -> None:
        task = asyncio.create_task(counter.reached(threshold))
        await asyncio.sleep(0)
        begun.wait(TIMEOUT)
        await task

    def loop(threshold: int) -> None:
        try:
            run(wait(threshold))
        except ofipy.FabricError as error:
            failed.append(error)

    threads = [threading.Thread(target=loop, args=(threshold,)) for threshold in (1, 2, 3, 3)]
    for thread in threads:
        thread.start()
    begun.wait(TIMEOUT)
    if end == "close":
        counter.close()
    for _ in range(0 if end == "close" else 3):
        counter.add(1)
    for thread in threads:
        thread.join(TIMEOUT)
        assert not thread.is_alive()
    assert all(isinstance(error, ofipy.Canceled) for error in failed)
    assert len(failed) == (4 if end == "close" else 0)


def test_the_descriptor_for_other_loops(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    counter = ep.domain.counter()
    assert not counter.arm(0)
    while not counter.arm(2):
        assert counter.value < 2
    writer = threading.Thread(target=counter.add, args=(2,))
    writer.start()
    assert select.select([counter], [], [], TIMEOUT)[0]
    writer.join()
    assert not counter.arm(2)
    assert counter.value == 2
    with pytest.raises(ofipy.InvalidArgument):
        counter.arm(-1)
    with pytest.raises(ofipy.InvalidArgument):
        run(counter.reached(2**64))
