# SPDX-License-Identifier: BSD-3-Clause
"""Several threads that sleep on one descriptor, and others that look at the same queue: each sleeper is woken."""

import asyncio
import select
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_loop import LOOPS, result_of, run_in

import ofipy
from ofipy._completion.aio import Poller

TIMEOUT = 20
# Seconds after which a thread that waits is asleep.
ASLEEP = 0.02
# How often a loop looks, and what is less than its pause before a look, seconds.
LOOKS = 50
PAUSE = 0.0009

OpenEndpoint = Callable[..., ofipy.Endpoint]


@pytest.fixture(params=["manual", "auto"])
def ep(request: pytest.FixtureRequest, open_endpoint: OpenEndpoint) -> ofipy.Endpoint:
    return open_endpoint(progress=request.param)


@pytest.fixture(params=LOOPS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_a_loop_sleeps_while_another_comes_and_goes(
    ep: ofipy.Endpoint, open_endpoint: OpenEndpoint, kind: str
) -> None:
    sender = open_endpoint(progress="auto")
    peer = sender.insert(ep.address)
    receive = ep.trecv(tag=1)
    waits = threading.Event()

    async def sleep() -> bytes:
        waiting = asyncio.ensure_future(result_of(receive))
        await asyncio.sleep(0)
        waits.set()
        return bytes((await waiting).data)

    async def come_and_go() -> bytes:
        waiting = asyncio.ensure_future(result_of(ep.trecv(tag=2)))
        await asyncio.sleep(0)
        sender.tsend(b"second", peer, tag=2)
        return bytes((await waiting).data)

    with ThreadPoolExecutor() as threads:
        sleeper = threads.submit(run_in, kind, sleep())
        waits.wait(TIMEOUT)
        time.sleep(ASLEEP)
        for _ in range(3):
            assert run_in(kind, come_and_go()) == b"second"
        time.sleep(ASLEEP)
        sender.tsend(b"first", peer, tag=1)
        assert sleeper.result(TIMEOUT) == b"first"


def test_loops_that_sleep_at_once(ep: ofipy.Endpoint, open_endpoint: OpenEndpoint, kind: str) -> None:
    """Each message is awaited by a loop of its own; the others sleep on."""
    count, rounds = 3, 20
    sender = open_endpoint(progress="auto")
    peer = sender.insert(ep.address)
    got = threading.Semaphore(0)

    async def listen(tag: int) -> list[bytes]:
        messages = []
        for _ in range(rounds):
            messages.append(bytes((await ep.trecv(tag=tag)).data))
            got.release()
        return messages

    with ThreadPoolExecutor(count) as threads:
        listening = [threads.submit(run_in, kind, listen(tag)) for tag in range(count)]
        for number in range(rounds):
            for tag in range(count):
                sender.tsend(b"%d" % number, peer, tag=tag)
                assert got.acquire(timeout=TIMEOUT)
                # Long enough for some of them to fall asleep.
                time.sleep(0.0003 * (number % 3))
        for each in listening:
            assert each.result(TIMEOUT) == [b"%d" % number for number in range(rounds)]


def record_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds from each end of arming the queues to the next begin, for all loops."""
    arm, pauses, ended = Poller.arm, [], [time.monotonic()]

    def recorded(poller: Poller) -> float | None:
        pauses.append(time.monotonic() - ended[0])
        try:
            return arm(poller)
        finally:
            ended[0] = time.monotonic()

    monkeypatch.setattr(Poller, "arm", recorded)
    return pauses


def test_completions_that_nobody_reads(
    ep: ofipy.Endpoint, me: ofipy.Peer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They keep the descriptor readable for whoever sleeps on it, and no loop busy that waits for something else.

    The loop pauses for a millisecond before each look. Without the pause it would look again at once.
    """
    ep.post_tsend(ep.register(bytearray(8)), me, tag=3, context=1)
    ep.trecv_into(bytearray(8), me, tag=3).wait(timeout=TIMEOUT)
    ends = threading.Event()

    def look_and_sleep() -> None:
        while not ends.is_set():
            if not ep.cq.arm():
                time.sleep(0.001)

    async def main() -> bytes:
        waiting = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        await asyncio.sleep(ASLEEP)
        pauses = record_pauses(monkeypatch)
        while len(pauses) < LOOKS:
            await asyncio.sleep(ASLEEP)
        assert statistics.median(pauses) > PAUSE
        await ep.tsend(b"x", me, tag=1)
        return bytes((await waiting).data)

    with ThreadPoolExecutor() as threads:
        looking = threads.submit(look_and_sleep)
        try:
            assert run_in(kind, main()) == b"x"
        finally:
            ends.set()
        looking.result(TIMEOUT)
    assert list(ep.cq.read()["context"]) == [1]


def test_a_thread_reads_the_counter_on_which_another_sleeps(ep: ofipy.Endpoint) -> None:
    counter = ep.domain.counter()
    armed = threading.Event()

    def sleep() -> int:
        while counter.arm(1):
            armed.set()
            assert select.select([counter], [], [], TIMEOUT)[0]
        return counter.value

    with ThreadPoolExecutor() as threads:
        sleeper = threads.submit(sleep)
        armed.wait(TIMEOUT)
        time.sleep(ASLEEP)
        assert counter.value == counter.errors == 0
        counter.add(1)
        assert sleeper.result(2 * TIMEOUT) == 1


@pytest.mark.parametrize("look", ["read", "peek", "wait"])
def test_a_thread_reads_the_events_for_which_a_loop_sleeps(ep: ofipy.Endpoint, look: str, kind: str) -> None:
    eq = ep.domain.event_queue()

    async def next_event() -> int:
        return (await eq.next()).context

    with ThreadPoolExecutor() as threads:
        sleepers = [threads.submit(run_in, kind, next_event()) for _ in range(2)]
        time.sleep(ASLEEP)
        if look == "wait":
            with pytest.raises(ofipy.TimedOut):
                eq.wait(timeout=0.001)
        else:
            assert getattr(eq, look)() is None
        for context in (1, 2):
            eq.write(ofipy.Event(context=context))
            time.sleep(ASLEEP)
        assert sorted(each.result(TIMEOUT) for each in sleepers) == [1, 2]
