# SPDX-License-Identifier: BSD-3-Clause
"""The interface between the command and its scenarios.

A scenario is a small program that uses ofipy. The command runs it many times; each run has another fault, another
schedule, or both. The seed and the number of the run determine which, so each run can be repeated.

A module in ``tests/explore/scenarios`` registers scenarios by a function ``list_scenarios(build)``. The command calls
it once for each :class:`~tests.explore.build.Build`: the tree as it is, or a copy of it in which a repair is undone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

__all__ = ["BUDGET", "CannotRun", "Decision", "Outcome", "Scenario", "format_seed", "parse_seed"]

BUDGET = 0.020
"""Seconds of virtual time that a scenario may take unless it says more."""


@dataclass(frozen=True)
class Decision:
    """One decision of a run: which thread continues, or which fault happens.

    A place is named by a function and a count, and not by a line, so that a trace survives changes elsewhere.
    """

    thread: str
    """The thread that reached the place, by its name in the scenario: ``main``, ``helper``, ``B``."""
    function: str
    """The function that it had reached: of the core, of libc, or of Python."""
    occurrence: int
    """How often this thread had reached this function by then in this run, from 1."""
    action: str
    """What was decided, as the scenario's kind writes it: ``fail EINTR``, ``run B``, ``die``."""


@dataclass(frozen=True)
class Outcome:
    """What a run showed."""

    verdict: str | None = None
    """None: nothing is wrong. Otherwise one line: ``deadlock``, ``lost message 3``, ``over budget: virtual 1.000 s,
    budget 0.020 s``."""
    steps: int = 0
    """Places at which something could have been decided."""
    faults: int = 0
    """Faults that happened in the run."""
    virtual: float = 0.0
    """Seconds of virtual time; 0 where the scenario has no virtual time."""
    story: tuple[str, ...] = ()
    """What happened up to the verdict, a line each: thread, function, file and line."""
    trace: tuple[Decision, ...] = ()
    """The decisions that make the run what it is. ``Scenario.run(…, trace=…)`` repeats them."""
    is_stale: bool = False
    """A trace was to be repeated, and the run did not reach one of its decisions. `verdict` names that decision."""

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The outcome that :meth:`to_json` wrote."""
        trace = tuple(Decision(**decision) for decision in values.get("trace", ()))
        return cls(**{**values, "story": tuple(values.get("story", ())), "trace": trace})


@dataclass
class Scenario(ABC):
    """A program that the command runs many times.

    The command calls the methods of one scenario from one thread at a time, and those of different scenarios from
    several. A scenario may keep processes between runs; :meth:`close` ends them.
    """

    name: str
    """Unique. Letters, digits, ``-`` and ``/``."""
    kind: str
    """``faults``: a fault at every step. ``schedules``: a scheduler decides who runs. ``model``: all states."""
    budget: float = BUDGET
    """Seconds of virtual time; a run that takes more gets a verdict."""
    is_deterministic: bool = True
    """Whether the same seed and number give the same story. The command repeats every 50th run of such a scenario; if
    steps or trace differ then, that is a verdict."""
    not_covered: Sequence[str] = field(default=())
    """What the scenario cannot show, a sentence each, for the report."""

    def prepare(self) -> None:  # noqa: B027
        """Build what it needs below ``build/``. Called once, before the first run.

        Raises
        ------
        CannotRun
            If a program that it needs is missing, or a build fails.
        """

    @abstractmethod
    def runs(self, seed: int) -> int | None:
        """How many different runs a seed has, numbered from 0; None if they do not end.

        Where they end, the command makes each run once, in order, and then draws another seed.
        """

    @abstractmethod
    def run(self, seed: int, number: int, trace: Sequence[Decision] | None = None) -> Outcome:
        """Make one run.

        Parameters
        ----------
        seed : int
            0 to 2**32 - 1. Whatever the scenario draws follows from it and the number.
        number : int
            Which of the seed's runs.
        trace : sequence of Decision, optional
            Decisions to repeat in place of those that seed and number would give. If the run does not reach one of
            them, the outcome is stale.
        """

    def shrink(self, seed: int, number: int, outcome: Outcome) -> Outcome:
        """A shorter run with the same verdict, or the outcome as it is."""
        del seed, number
        return outcome

    def close(self) -> None:  # noqa: B027
        """End what the scenario has kept. It may be called twice."""


class CannotRun(Exception):
    """Something that the command needs is missing; it exits with 2 and this text."""


def format_seed(seed: int, number: int | None = None) -> str:
    """A seed as the command prints it, with the number of a run: ``7f3a01c2:412``."""
    return f"{seed:08x}" if number is None else f"{seed:08x}:{number}"


def parse_seed(text: str) -> tuple[int, int]:
    """The seed and the number that :func:`format_seed` wrote.

    Raises
    ------
    ValueError
        If it did not.
    """
    seed, separator, number = text.partition(":")
    if not separator:
        raise ValueError(f"{text!r} is no SEED:NUMBER")
    return int(seed, 16), int(number)
