# SPDX-License-Identifier: BSD-3-Clause
"""The case ``executor``: what its sides do, whoever moves the tasks."""

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from fabtests.compare.case import Cell, Line
from fabtests.compare.cases import CASES
from fabtests.compare.entrants import DASK_TASKS, MPI_TASKS, TASKS_OF_OFIPY, Absent, Entrant, recipe_of
from fabtests.compare.runner import select_rows
from fabtests.compare.tasks import TASKS, Executing, Tasks
from ofipy.pingpong.pair import Pair

SIZE = 1 << 20


class Threads(Executing):
    """An executor within this process."""

    def __init__(self, pool: Executor, wrong: int) -> None:
        self._pool, self._wrong = pool, wrong

    def map(self, function: Callable[..., Any], count: int) -> int:
        return sum(self._pool.map(function, range(count))) + self._wrong

    def call(self, function: Callable[..., Any], argument: Any) -> Any:
        return self._pool.submit(function, argument).result() + self._wrong


class Side(Tasks):
    def __init__(self, first: bool, pool: Executor, wrong: int = 0) -> None:
        super().__init__(first)
        self._executor = Threads(pool, wrong)

    def executor(self) -> Executing:
        return self._executor

    def version(self) -> str:
        return "1"

    def offer(self) -> Any:
        return None

    def meet(self, other: Any) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("mode", [TASKS, "argument-64m"])
def test_the_first_side_takes_the_time_and_checks_the_results(mode: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert Side(True, pool).measure(mode, SIZE, 10) > 0
        assert Side(False, pool).measure(mode, SIZE, 10) == 0
        with pytest.raises(AssertionError, match="10 tasks"):
            Side(True, pool, wrong=1).measure(mode, SIZE, 10)


def test_each_mode_has_one_size_and_its_own_metric() -> None:
    case = CASES["executor"]
    assert select_rows(case, set(), set()) == [[Line(TASKS, 8)], [Line("argument-64m", 64 << 20)]]
    assert [case.metric_of(mode) for mode in case.modes] == ["tasks_per_sec", "mb_per_sec"]
    assert all(case.higher_is_better(mode) for mode in case.modes)
    assert {cell.mode for cell in case.peer_cells(Line(TASKS, 8)).values()} == {TASKS}


class Clock:
    """A contender whose every task takes a millisecond."""

    def pair(self, entrant: Entrant) -> "Clock":
        return self

    def call(self, name: str, mode: str, size: int, count: int) -> list[int]:
        assert name == "measure"
        return [count * 1_000_000, 0]


def test_rounds_are_half_a_second_long_and_rates_are_of_what_was_done() -> None:
    case, clock = CASES["executor"], Clock()
    for mode, size, value in ((TASKS, 8, 1e3), ("argument-64m", 64 << 20, (64 << 20) / 1e3)):
        cell = Cell(case.own, mode, size)
        count = case.calibrate(clock, cell)  # type: ignore[arg-type]
        assert count == 500
        assert case.run(clock, cell, count).value == pytest.approx(value)  # type: ignore[arg-type]


def test_what_is_missing_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for entrant, extra in ((MPI_TASKS, "bench"), (DASK_TASKS, "dask")):
        with pytest.raises(Absent, match=rf"\.\[{extra}\]"):
            recipe_of(entrant).launcher()


def test_ofipy_as_a_contender() -> None:
    core = min(os.sched_getaffinity(0))
    recipe = recipe_of(TASKS_OF_OFIPY)
    pair = Pair(recipe.contender, cores=(core, core))
    try:
        offers = pair.call("offer")
        pair.call_each("meet", [(offers[1],), (offers[0],)])
        for mode in (TASKS, "argument-64m"):
            first, second = pair.call("measure", mode, SIZE, 3)
            assert (first > 0, second) == (True, 0)
    finally:
        pair.close()
