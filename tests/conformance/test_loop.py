# SPDX-License-Identifier: BSD-3-Clause
"""Event loops that poll before they sleep: asyncio's own, ofipy's, another one's."""

import asyncio
import importlib.util
import os
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from sides import Side, Sides

import ofipy
from ofipy._completion.aio import Poller

TIMEOUT = 30
COUNT = 30  # messages, where it takes several

OpenEndpoint = Callable[..., ofipy.Endpoint]
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class OwnSelector(selectors.SelectSelector):
    """Another selector than epoll's."""


def make_loop(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "ofipy":
        return ofipy.loop()
    if kind == "uvloop":
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        return loop
    return asyncio.SelectorEventLoop(OwnSelector() if kind == "select" else None)


LOOPS = ["asyncio", "ofipy", "select"] + ["uvloop"] * (importlib.util.find_spec("uvloop") is not None)


def run_in(kind: str, main: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(TIMEOUT):
            return await main

    with asyncio.Runner(loop_factory=lambda: make_loop(kind)) as runner:
        return runner.run(bounded())


@pytest.fixture(params=LOOPS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def ep(open_endpoint: OpenEndpoint) -> ofipy.Endpoint:
    return open_endpoint(progress="auto")


async def result_of(request: ofipy.Request) -> Any:
    return await request


def play(side: Side, kind: str, rounds: int, tasks: int) -> None:
    async def one(tag: int) -> None:
        room = bytearray(8)
        for number in range(rounds):
            text = number.to_bytes(8, "little")
            if side.first:
                await side.ep.tsend(text, side.peer, tag=tag)
            await side.ep.trecv_into(room, side.peer, tag=tag)
            assert room == text
            if not side.first:
                await side.ep.tsend(text, side.peer, tag=tag)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for tag in range(tasks):
                group.create_task(one(tag))

    run_in(kind, main())


@pytest.mark.parametrize("tasks", [1, 30])
def test_between_two_sides(sides: Sides, kind: str, tasks: int) -> None:
    sides.run(play, play, kind, 600 // tasks, tasks, progress="auto")


def answer_until_told(side: Side) -> None:
    room = bytearray(1)
    while room != b"e":
        side.ep.trecv_into(room, side.peer, tag=1).wait(timeout=TIMEOUT)
        side.ep.tsend(room, side.peer, tag=2).wait(timeout=TIMEOUT)


def ask_until_time_is_over(side: Side, kind: str) -> None:
    room = bytearray(1)

    async def ask(text: bytes) -> None:
        await side.ep.tsend(text, side.peer, tag=1)
        await side.ep.trecv_into(room, side.peer, tag=2)

    async def for_ever() -> None:
        while True:
            await ask(b"x")

    async def main() -> None:
        async def turns() -> None:
            for _ in range(6):
                await asyncio.sleep(0.001)

        asking = asyncio.create_task(for_ever())
        # Neither ever ends where the one task keeps the loop.
        await asyncio.create_task(turns())
        asking.cancel()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await for_ever()

    run_in(kind, main())
    # What was cancelled in between may have been answered, or not.
    side.ep.tsend(b"e", side.peer, tag=1).wait(timeout=TIMEOUT)
    while room != b"e":
        side.ep.trecv_into(room, side.peer, tag=2).wait(timeout=TIMEOUT)


def ask(side: Side, kind: str) -> None:
    ask_until_time_is_over(side, kind)


def answer(side: Side, kind: str) -> None:
    answer_until_told(side)


def test_quick_answers_do_not_keep_the_loop(sides: Sides, kind: str) -> None:
    """A task whose peer answers at once: time-outs and other tasks have their turn all the same."""
    sides.run(ask, answer, kind, progress="auto")


def count_turns(loop: Any) -> list[None]:
    """A list that grows with each turn of a loop in Python; uvloop's turns are not seen."""
    turns: list[None] = []
    if hasattr(loop, "_run_once"):
        turn = loop._run_once
        loop._run_once = lambda: (turns.append(None), turn())
    return turns


@pytest.mark.needs("descriptor")
@pytest.mark.parametrize("ticking", [False, True])
def test_idle_loop_burns_nothing(ep: ofipy.Endpoint, kind: str, ticking: bool) -> None:
    """Nor does one that other things wake often: it looks and turns a few times whenever it wakes."""
    ticks, pause = (40, 0.01) if ticking else (1, 0.2)

    async def idle() -> float:
        used = time.thread_time()
        for _ in range(ticks):
            await asyncio.sleep(pause)
        return time.thread_time() - used

    async def main() -> float:
        receive = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        await asyncio.sleep(0.05)
        turns, looks = count_turns(asyncio.get_running_loop()), ep.stats().progress_calls
        used = await idle()
        assert ep.stats().progress_calls - looks <= 5 * ticks + 20
        assert len(turns) <= 5 * ticks + 20
        receive.cancel()
        return used

    used, alone = run_in(kind, main()), asyncio.run(idle())
    # An emulated processor takes long for the ticks themselves, and not always as long: there the counts judge.
    if alone < 0.02:
        assert used < (0.06 if ticking else 0.02)


def test_other_threads_wake_the_loop(ep: ofipy.Endpoint, kind: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        receive = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        for pause in (0.0, 0.0, 0.01):
            told = asyncio.Event()

            def tell(told: asyncio.Event = told, pause: float = pause) -> None:
                time.sleep(pause)
                loop.call_soon_threadsafe(told.set)

            threading.Thread(target=tell).start()
            await told.wait()
        receive.cancel()

    run_in(kind, main())


def test_another_thread_takes_the_completion(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    async def main() -> None:
        for number in range(50):
            receive = ep.trecv_into(bytearray(1), me, tag=1)
            waiting = asyncio.ensure_future(result_of(receive))
            await asyncio.sleep(0 if number % 2 else 0.001)
            thread = threading.Thread(
                target=lambda receive=receive: (ep.tsend(b"x", me, tag=1).wait(), receive.wait())
            )
            thread.start()
            assert await waiting is receive
            thread.join()

    run_in(kind, main())


def test_several_endpoints(open_endpoint: OpenEndpoint, kind: str) -> None:
    endpoints = [open_endpoint(progress="auto") for _ in range(3)]
    selves = [each.insert(each.address) for each in endpoints]

    async def listen(ep: ofipy.Endpoint, count: int) -> list[bytes]:
        return [bytes((await ep.trecv(tag=1)).data) for _ in range(count)]

    async def main() -> None:
        tasks = [asyncio.ensure_future(listen(ep, 20)) for ep in endpoints]
        for number in range(20):
            for ep, itself in zip(endpoints, selves, strict=True):
                await ep.tsend(b"%d" % number, itself, tag=1)
            await asyncio.sleep(0.001 if number % 3 == 0 else 0)
        for task in tasks:
            assert await task == [b"%d" % number for number in range(20)]

    run_in(kind, main())


@pytest.mark.needs("descriptor")
@pytest.mark.parametrize("patient", [False, True])
def test_idle_queues_are_left_alone(open_endpoint: OpenEndpoint, kind: str, patient: bool) -> None:
    """In a loop that sleeps at once, whose other queues have something again and again."""
    busy, quiet = (open_endpoint(progress="manual") for _ in range(2))
    itself = busy.insert(busy.address)

    async def listen() -> None:
        for number in range(COUNT):
            assert (await busy.trecv(tag=1)).data == b"%d" % number

    async def main() -> int:
        if patient:
            Poller.of(asyncio.get_running_loop()).longest_spin = 0
        idle = asyncio.ensure_future(result_of(quiet.trecv(tag=1)))
        listening = asyncio.ensure_future(listen())
        await asyncio.sleep(0.01)
        before = quiet.stats().progress_calls
        for number in range(COUNT):
            await busy.tsend(b"%d" % number, itself, tag=1)
            await asyncio.sleep(0.002)
        await listening
        rounds = quiet.stats().progress_calls - before
        idle.cancel()
        return rounds

    rounds = run_in(kind, main())
    # The selector of ofipy's loop looks at all, once a turn; a library that matches by itself is asked before each
    # sleep.
    looks_at_all = kind == "ofipy" or quiet.info.offloads_matching
    assert not patient or looks_at_all or rounds < COUNT


def test_another_thread_reads_the_queue(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    """It takes no completions of requests, nor the wake-up of the loop that sleeps."""

    async def main() -> None:
        waiting = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        await asyncio.sleep(0.02)

        def read_and_send() -> None:
            time.sleep(0.02)
            ep.cq.read()
            ep.tsend(b"x", me, tag=1).wait(timeout=TIMEOUT)
            while not waiting.done():
                ep.cq.read()
                time.sleep(0.001)

        thread = threading.Thread(target=read_and_send)
        thread.start()
        assert (await waiting).data == b"x"
        thread.join()

    run_in(kind, main())


def test_loops_in_threads_share_an_endpoint(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    got: dict[int, list[bytes]] = {}

    async def listen(tag: int) -> list[bytes]:
        return [bytes((await ep.trecv(tag=tag)).data) for _ in range(30)]

    def work(tag: int) -> None:
        got[tag] = run_in(kind, listen(tag))

    threads = [threading.Thread(target=work, args=(tag,)) for tag in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        for tag in range(3):
            ep.tsend(b"%d" % number, me, tag=tag).wait(timeout=TIMEOUT)
    for thread in threads:
        thread.join(TIMEOUT)
    assert got == {tag: [b"%d" % number for number in range(30)] for tag in range(3)}


def test_one_of_two_who_await_is_cancelled(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    async def main() -> None:
        receive = ep.trecv_into(bytearray(1), me, tag=1)
        first, second = (asyncio.ensure_future(result_of(receive)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await ep.tsend(b"x", me, tag=1)
        assert await second is receive
        assert receive.length == 1

    run_in(kind, main())


def test_child_process(ep: ofipy.Endpoint, kind: str) -> None:
    async def main() -> None:
        receive = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", "print(6 * 7)", stdout=asyncio.subprocess.PIPE
        )
        out, _ = await child.communicate()
        assert out == b"42\n"
        receive.cancel()

    run_in(kind, main())


def test_signals(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    async def main() -> None:
        receive = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        seen = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, seen.set)
        for pause in (0.0, 0.01):
            await asyncio.sleep(pause)
            seen.clear()
            os.kill(os.getpid(), signal.SIGUSR1)
            await seen.wait()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGUSR1)
        await ep.tsend(b"x", me, tag=1)
        assert (await receive).data == b"x"

    run_in(kind, main())


def test_control_c(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    async def interrupted() -> None:
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), signal.SIGINT)
        await ep.trecv(tag=1)

    with pytest.raises(KeyboardInterrupt):
        run_in(kind, interrupted())

    async def afterwards() -> bytes:
        await ep.tsend(b"kept", me, tag=1)
        return bytes((await ep.trecv(tag=1)).data)

    assert run_in(kind, afterwards()) == b"kept"


@pytest.mark.parametrize("step", ["start_spin", "arm"])
def test_a_look_without_memory_is_made_again(
    ep: ofipy.Endpoint, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A loop of asyncio's own sleeps until the poller's next turn: that comes also if this one had no memory."""
    whole, failed = getattr(Poller, step), asyncio.Event()

    def fail_once(poller: Poller) -> Any:
        if not failed.is_set():
            failed.set()
            raise MemoryError(step)
        return whole(poller)

    async def main() -> None:
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        request = ep.trecv(tag=1)
        waiting = asyncio.ensure_future(result_of(request))
        await failed.wait()
        await ep.tsend(b"after all", ep.insert(ep.address), tag=1)
        assert bytes(await waiting) == b"after all"
        assert [str(error) for error in told] == [step]

    monkeypatch.setattr(Poller, step, fail_once)
    run_in("asyncio", main())


def test_a_queue_that_the_loop_had_no_memory_to_watch_is_watched_later(ep: ofipy.Endpoint) -> None:
    """A poller that takes it for watched would sleep for ever."""
    told: list[Any] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        whole, failed = loop.add_reader, []

        def fail_once(fd: int, *call: Any) -> None:
            if not failed:
                failed.append(fd)
                raise MemoryError("add_reader")
            whole(fd, *call)

        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        loop.add_reader = fail_once  # type: ignore[method-assign]
        request = ep.trecv(tag=1)
        waiting = asyncio.ensure_future(result_of(request))
        while not told:
            await asyncio.sleep(0.001)
        await ep.tsend(b"after all", ep.insert(ep.address), tag=1)
        assert bytes(await waiting) == b"after all"

    run_in("asyncio", main())
    assert [str(error) for error in told] == ["add_reader"]


def test_exit_from_one_of_many_tasks(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    """What ends the loop ends it at once; who was to go on with the same news does so in the next one."""
    went_on = []

    async def leave(receive: ofipy.Request) -> None:
        await receive
        went_on.append(receive)
        raise SystemExit(3)

    async def main() -> None:
        receives = [ep.trecv_into(bytearray(1), me, tag=tag) for tag in range(3)]
        tasks = [asyncio.ensure_future(leave(each)) for each in receives]
        await asyncio.sleep(0.01)
        for tag in range(3):
            ep.tsend(b"x", me, tag=tag)
        await asyncio.gather(*tasks)

    with pytest.raises(SystemExit):
        run_in(kind, main())
    assert went_on


def test_closed_by_another_thread(open_endpoint: OpenEndpoint, kind: str) -> None:
    ep = open_endpoint(progress="auto")

    async def main() -> None:
        waiting = [asyncio.ensure_future(result_of(ep.trecv_into(bytearray(1), tag=tag))) for tag in range(3)]
        await asyncio.sleep(0.01)
        closing = threading.Thread(target=ep.close)
        closing.start()
        for each in waiting:
            with pytest.raises(ofipy.Canceled):
                await each
        closing.join()
        await asyncio.sleep(0.01)

    run_in(kind, main())


def test_many_loops_one_after_the_other(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    async def main(number: int) -> bytes:
        receive = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        await asyncio.sleep(0.001)
        await ep.tsend(b"%d" % number, me, tag=1)
        return bytes((await receive).data)

    for number in range(5):
        assert run_in(kind, main(number)) == b"%d" % number


def test_prepared_that_was_not_started(ep: ofipy.Endpoint, me: ofipy.Peer, kind: str) -> None:
    async def main() -> None:
        prepared = ep.prepare_trecv(bytearray(1), me, tag=1)
        with pytest.raises(ofipy.FabricError, match="not started"):
            await prepared
        prepared.start()
        await ep.tsend(b"x", me, tag=1)
        assert await prepared is prepared

    run_in(kind, main())
