# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy.Executor`` with workers of its own: what concurrent.futures promises, and what fails one task alone."""

from __future__ import annotations

import asyncio
import concurrent.futures
import operator
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from pathlib import Path
from typing import Any

import executor_tasks as tasks
import numpy as np
import pytest
from meeting import Meeting
from started import wait_until

import ofipy
from ofipy.executor import RemoteTraceback

pytestmark = pytest.mark.timeout(120)

MIB = 1 << 20


@pytest.fixture(scope="module")
def pair() -> Iterator[ofipy.Executor]:
    with ofipy.Executor(2) as executor:
        yield executor.bootup(timeout=60)


@pytest.fixture
def one() -> Iterator[ofipy.Executor]:
    with ofipy.Executor(1) as executor:
        yield executor


# calls and futures


def test_it_is_an_executor(pair: ofipy.Executor) -> None:
    assert isinstance(pair, concurrent.futures.Executor)
    future = pair.submit(tasks.add, 1, other=2)
    assert type(future) is Future
    assert future.result(timeout=60) == 3
    assert future.done()
    assert not future.running()
    assert future.exception() is None


def test_workers_are_other_processes(pair: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    assert pair.num_workers == 2
    both = [meeting(), meeting()]
    futures = [each.submit(pair) for each in both]
    pids = {each.pid() for each in both}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert all(future.running() for future in futures)
    for each in both:
        each.end()
    assert {future.result(timeout=60) for future in futures} == pids


def test_map(pair: ofipy.Executor) -> None:
    numbers = range(50)
    squares = [number * number for number in numbers]
    assert list(pair.map(tasks.square, numbers)) == squares
    assert list(pair.map(tasks.square, numbers, chunksize=7)) == squares
    assert list(pair.map(tasks.square, numbers, buffersize=3)) == squares
    assert list(pair.map(operator.add, numbers, range(3))) == [0, 2, 4]
    assert sorted(pair.map(tasks.square, numbers, unordered=True, chunksize=3, buffersize=2)) == squares
    assert list(pair.starmap(operator.add, [(1, 2), (3, 4)])) == [3, 7]
    assert list(pair.map(tasks.square, [])) == []
    for wrong in ({"chunksize": 0}, {"buffersize": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            pair.map(tasks.square, numbers, **wrong)


def test_map_submits_as_far_ahead_as_it_is_told(pair: ofipy.Executor) -> None:
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(10**9):  # without an end, as far as a test is concerned
            taken.append(number)
            yield number

    results = pair.map(tasks.square, numbers(), buffersize=4)
    assert len(taken) == 4
    assert [next(results) for _ in range(10)] == [number * number for number in range(10)]
    assert len(taken) == 14


def test_map_yields_what_is_first_or_in_order(pair: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    late = meeting()
    calls = [(tasks.meet, late.arguments), (tasks.pid, ())]
    results = pair.starmap(tasks.apply, calls, unordered=True)
    other = next(results)  # of the second call, while the first one runs
    assert other != late.pid()
    late.end()
    assert next(results) == late.pid()


@pytest.mark.parametrize("unordered", [False, True])
def test_map_that_is_late(pair: ofipy.Executor, meeting: Callable[[], Meeting], unordered: bool) -> None:
    late = meeting()
    results = pair.starmap(tasks.meet, [late.arguments], timeout=0.01, unordered=unordered)
    with pytest.raises(TimeoutError):
        next(results)
    # It was cancelled if no worker had it by then; else it runs, or will.
    late.end()
    wait_until(lambda: "0 tasks" in repr(pair), 60)


def test_a_map_that_is_dropped_cancels_its_rest(one: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    first, second = meeting(), meeting()
    results = one.starmap(tasks.meet, [first.arguments, second.arguments])
    first.pid()
    first.end()
    blocked = meeting()
    next(results)
    second.pid()
    future = blocked.submit(one)
    rest = one.map(tasks.square, range(10))
    second.end()
    del rest
    blocked.pid()
    blocked.end()
    assert future.result(timeout=60)


def test_wait_as_completed_and_await(pair: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    late = meeting()
    slow, quick = late.submit(pair), pair.submit(tasks.square, 3)
    done, rest = concurrent.futures.wait([slow, quick], 60, concurrent.futures.FIRST_COMPLETED)
    assert (done, rest) == ({quick}, {slow})
    ends = concurrent.futures.as_completed([slow, quick], timeout=60)
    assert next(ends) is quick
    late.end()
    assert next(ends) is slow

    async def awaited() -> list[int]:
        loop = asyncio.get_running_loop()
        by_loop = loop.run_in_executor(pair, tasks.square, 5)
        return [await asyncio.wrap_future(pair.submit(tasks.square, 4)), await by_loop]

    assert asyncio.run(awaited()) == [16, 25]


def test_cancel(one: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    first = meeting()
    running = first.submit(one)
    first.pid()
    waiting, behind = one.submit(tasks.square, 2), one.submit(tasks.square, 3)
    assert not running.cancel()
    assert waiting.cancel()
    assert waiting.cancelled()
    first.end()
    assert behind.result(timeout=60) == 9
    with pytest.raises(CancelledError):
        waiting.result(timeout=60)


def test_tasks_of_one_worker_run_in_order(one: ofipy.Executor) -> None:
    futures = [one.submit(tasks.set_state, number) for number in range(20)]
    concurrent.futures.wait(futures, 60)
    assert [number for _, number in one.submit(tasks.get_state).result(timeout=60)] == list(range(20))


# what fails one task alone


def test_exceptions_come_with_their_traceback(pair: ofipy.Executor) -> None:
    error = pair.submit(tasks.fail, "told you").exception(timeout=60)
    assert isinstance(error, ValueError)
    assert error.args == ("told you",)
    assert isinstance(error.__cause__, RemoteTraceback)
    assert "raise ValueError(text)" in str(error.__cause__)
    assert isinstance(pair.submit(tasks.leave).exception(timeout=60), SystemExit)
    assert pair.submit(tasks.square, 2).result(timeout=60) == 4


def test_an_exception_that_cannot_travel(pair: ofipy.Executor) -> None:
    error = pair.submit(tasks.raise_two_arguments).exception(timeout=60)
    assert isinstance(error, pickle.PicklingError)
    assert "has raised TwoArguments: one" in str(error)
    assert "TwoArguments" in str(error.__cause__)


@pytest.mark.parametrize(
    ("call", "kind", "note"),
    [
        ((lambda: 1,), (pickle.PicklingError, AttributeError), "was not sent to a worker"),
        ((tasks.add, tasks.Unpicklable()), TypeError, "was not sent to a worker"),
        ((tasks.add, threading.Lock()), TypeError, "was not sent to a worker"),
        ((tasks.add, tasks.Unreadable()), LookupError, None),
        ((tasks.make_unpicklable,), TypeError, "its result cannot be sent"),
        ((tasks.make_unreadable,), LookupError, "cannot be unpickled here"),
    ],
)
def test_what_cannot_travel(pair: ofipy.Executor, call: Any, kind: Any, note: str | None) -> None:
    before, future, behind = (
        pair.submit(tasks.square, 5),
        pair.submit(*call),
        pair.submit(tasks.square, 6),
    )
    error = future.exception(timeout=60)
    assert isinstance(error, kind)
    assert note is None or note in "".join(error.__notes__)
    assert (before.result(timeout=60), behind.result(timeout=60)) == (25, 36)
    assert pair.num_workers == 2


# workers


def test_the_initializer_runs_once_in_each_worker(meeting: Callable[[], Meeting]) -> None:
    with ofipy.Executor(2, initializer=tasks.set_state, initargs=("ready",)) as executor:
        both = [meeting(), meeting()]
        futures = [each.submit(executor) for each in both]
        pids = {each.pid() for each in both}
        for each in both:
            each.end()
        concurrent.futures.wait(futures, 60)
        states = executor.map(tasks.apply, [tasks.get_state] * 20, [()] * 20)
        assert {tuple(state) for state in states} <= {((pid, "ready"),) for pid in pids}


def test_an_initializer_that_fails_breaks_its_executor() -> None:
    with ofipy.Executor(1, initializer=tasks.fail, initargs=("no way",)) as executor:
        futures = [executor.submit(tasks.square, number) for number in range(3)]
        for future in futures:
            error = future.exception(timeout=60)
            assert isinstance(error, BrokenExecutor)
            assert "ValueError: no way" in str(error)
        assert "no way" in str(error.__cause__)
        with pytest.raises(BrokenExecutor, match="no way"):
            executor.submit(tasks.square, 1)


def test_what_it_refuses_at_once() -> None:
    with pytest.raises(TypeError, match="callable"):
        ofipy.Executor(1, initializer=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot travel"):
        ofipy.Executor(1, initializer=tasks.add, initargs=(tasks.Unpicklable(),))
    for wrong in ({"max_workers": 0}, {"retries": -1}, {"listen": "host:"}, {"listen": ":1"}):
        with pytest.raises(ofipy.InvalidArgument, match=next(iter(wrong))):
            ofipy.Executor(**wrong)  # type: ignore[arg-type]


def test_bootup() -> None:
    with ofipy.Executor(2) as executor:
        assert executor.bootup(wait=False) is executor
        assert executor.bootup(timeout=60).num_workers == 2
        with pytest.raises(TimeoutError, match="2 workers are ready"):
            executor.bootup(workers=3, timeout=0.01)
        assert "2 workers, 0 tasks" in repr(executor)


# many, and large


def test_tasks_wait_here_until_a_worker_is_idle(one: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    first = meeting()
    running = first.submit(one)
    first.pid()
    endpoint = one._pool._endpoint
    before = endpoint.stats().sends
    futures = [one.submit(tasks.square, number) for number in range(100_000)]
    settled = one.submit(tasks.Unpicklable)  # the last of the queue
    assert endpoint.stats().sends == before
    for future in futures:
        assert future.cancel()
    first.end()
    assert running.result(timeout=60)
    assert settled.exception(timeout=60) is not None
    assert endpoint.stats().sends <= before + 3


@pytest.mark.parametrize("provider", ["link", "tcp"])
def test_large_arguments_and_results_are_not_copied(
    provider: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OFIPY_PROVIDER", provider)
    key = tmp_path / "key"
    key.touch(mode=0o600)
    key.write_bytes(b"k" * 32)
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(key))
    size, slack = 256 * MIB, 64 * MIB
    with ofipy.Executor(1) as executor:
        executor.submit(tasks.peak_growth, np.ones(1, np.uint8))
        executor.submit(tasks.note_peak).result(timeout=60)
        array = np.ones(size, np.uint8)
        before = tasks.peak()
        total, there = executor.submit(tasks.peak_growth, array).result(timeout=120)
        assert total == size
        assert there < size + slack
        assert tasks.peak() < before + slack
        del array
        before = tasks.peak()
        assert executor.submit(tasks.zeros, size).result(timeout=120).nbytes == size
        assert tasks.peak() < before + slack
        executor.submit(tasks.note_peak).result(timeout=60)


def test_idle_workers_sleep(pair: ofipy.Executor, meeting: Callable[[], Meeting]) -> None:
    """Tasks go to the worker that became idle last. So the other one sleeps through all of these."""
    both = [meeting(), meeting()]
    futures = [each.submit(pair) for each in both]
    for each in both:
        each.pid()
    both[0].end()
    sleeper = futures[0].result(timeout=60)
    both[1].end()
    busy = futures[1].result(timeout=60)
    assert sleeper != busy
    before = tasks.switches(sleeper)
    for number in range(300):
        assert pair.submit(tasks.pid).result(timeout=60) == busy, number
    assert tasks.switches(sleeper) - before < 30


def test_an_idle_executor_sleeps(one: ofipy.Executor, pair: ofipy.Executor) -> None:
    """Its thread sleeps through all that another executor of the process does."""
    one.bootup(timeout=60)
    assert one.submit(tasks.square, 2).result(timeout=60) == 4
    thread = one._pool._thread.native_id
    before = tasks.switches(os.getpid(), thread)
    for number in range(300):
        assert pair.submit(tasks.square, number).result(timeout=60) == number**2
    assert tasks.switches(os.getpid(), thread) - before < 30
