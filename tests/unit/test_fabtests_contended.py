# SPDX-License-Identifier: BSD-3-Clause
"""The case ``array-contended``: its neighbour, and when that copies."""

import itertools
import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fabtests.compare import copier
from fabtests.compare.case import Cell, Line
from fabtests.compare.cases import CASES
from fabtests.compare.contended import ArrayContended
from fabtests.compare.copier import Copier, pick_core
from fabtests.compare.entrants import COPIER, FORCED, Entrant, recipe_of
from fabtests.compare.field import Field
from ofipy.pingpong.pipe import pick_cores

MIB = 1 << 20
PIPELINE, ATTACH_ONLY = FORCED


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour with little memory."""
    monkeypatch.setattr(copier, "LEAST_BYTES", 1 << 16)
    monkeypatch.setattr(copier, "largest_cache", lambda: 0)


@pytest.mark.usefixtures("small")
def test_the_neighbour_copies_between_begin_and_end() -> None:
    neighbour = Copier(True)
    neighbour._source.fill(7)
    for _ in range(2):
        neighbour._target.fill(0)
        neighbour.begin()
        assert neighbour.end() >= 1
        assert (neighbour._target == 7).all()
    neighbour._target.fill(0)
    neighbour.close()
    assert not neighbour._target.any()


def test_its_memory_is_larger_than_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copier, "LEAST_BYTES", 1000)
    monkeypatch.setattr(copier, "largest_cache", lambda: 2000)
    assert Copier(True)._source.size == 4000
    monkeypatch.setattr(copier, "largest_cache", lambda: 0)
    assert Copier(True)._source.size == 1000


def test_it_has_a_core_of_its_own_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 3, 5, 7})
    assert pick_core((2, 3)) == 5
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 3})
    assert pick_core((2, 3)) == 2  # the sender's


class Worked:
    """Writes down what is called; windows take 5 and 7 µs a message in turn."""

    def __init__(self, name: str, calls: list[tuple[str, str]]) -> None:
        self._name, self._calls = name, calls

    def call(self, name: str, *arguments: Any) -> list[Any]:
        if name != "bandwidth":
            self._calls.append((self._name, name))
            return [None]
        mode, _, window, count, _ = arguments
        self._calls.append((self._name, mode))
        return [np.array([5_000, 7_000] * (count // 2)) * window]


class Witness:
    """A field of such contenders."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def has(self, entrant: Entrant) -> bool:
        return True

    def pair(self, entrant: Entrant) -> Worked:
        return Worked(entrant.name, self.calls)


@pytest.mark.parametrize("entrant", [Entrant("ofipy", "shm"), *FORCED], ids=str)
def test_the_neighbour_copies_in_its_own_mode_only(entrant: Entrant) -> None:
    case, field = ArrayContended(), Witness()
    found = case.run(field, Cell(entrant, "array-contended", MIB), 4)  # type: ignore[arg-type]
    assert field.calls == [(COPIER, "begin"), (entrant.name, "array"), (COPIER, "end")]
    assert found.value == pytest.approx(6.0)  # the mean, µs a message
    field.calls.clear()
    case.run(field, Cell(entrant, "array", MIB), 4)  # type: ignore[arg-type]
    assert field.calls == [(entrant.name, "array")]


def test_the_forced_ways_stand_beside_both_states() -> None:
    case = CASES["array-contended"]
    for mode in ("array-contended", "array"):
        cells = case.peer_cells(Line(mode, MIB))
        assert {name: (cell.entrant, cell.mode) for name, cell in cells.items()} == {
            "pipeline": (PIPELINE, mode),
            "attach-only": (ATTACH_ONLY, mode),
        }
    assert recipe_of(PIPELINE).environment == {"OFIPY_SHM_ATTACH": "no"}
    assert recipe_of(ATTACH_ONLY).environment == {"OFIPY_SHM_ATTACH": "always"}


def test_a_round_of_every_row_between_processes() -> None:
    case = CASES["array-contended"]
    with Field(cores=pick_cores()) as field:
        for line in itertools.chain.from_iterable(case.groups()):
            for cell in (case.own_cell(line), case.peer_cells(line)["pipeline"]):
                assert field.has(cell.entrant), field.absent
                assert case.run(field, cell, 3).value > 0


# Starts the neighbour, and dies without a word to it.
ORPHAN = """
import os, signal
from fabtests.compare.entrants import COPIER, Entrant
from fabtests.compare.field import Field
from ofipy.pingpong.pipe import pick_cores
field = Field(cores=pick_cores())
if field.has(Entrant(COPIER)):
    field.pair(Entrant(COPIER)).call("begin")
    print("it copies", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_neighbour_ends_with_the_program() -> None:
    # It holds the other end of the pipe for errors, so this returns only when it has ended as well.
    done = subprocess.run(
        [sys.executable, "-P", "-c", ORPHAN], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "it copies\n", "")
