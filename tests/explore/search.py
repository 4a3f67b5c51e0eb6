# SPDX-License-Identifier: BSD-3-Clause
"""Searching: runs of all scenarios in turn until the time is over, or until one of them has found something."""

import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .scenario import Outcome, Scenario

__all__ = ["Failure", "Search", "Tally", "draw_seed"]

REPEATED = 50
"""Every run of this number of a deterministic scenario is made twice."""
SLICE = 0.5
"""Seconds for which one scenario runs before the next one has its turn."""
MOST_FAILURES = 5
"""Of one verdict in one scenario; the others are counted."""


def draw_seed() -> int:
    """A fresh seed."""
    return secrets.randbits(32)


@dataclass
class Failure:
    """A run with a verdict."""

    scenario: str
    verdict: str
    seed: int
    number: int
    outcome: Outcome


@dataclass
class Tally:
    """What was done in a scenario."""

    name: str
    schedules: int = 0
    steps: int = 0
    faults: int = 0


@dataclass
class Search:
    """A search over scenarios, with one seed.

    Parameters
    ----------
    scenarios : sequence of Scenario
        Those that take turns. Two of one name, with processes of their own, search beside each other.
    seed : int
        Of the first pass. A scenario whose runs are all made draws another one, and so does the second of a name.
    stops_at_failure : bool
        Whether the first verdict ends the search.
    """

    scenarios: Sequence[Scenario]
    seed: int
    stops_at_failure: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    suppressed: int = 0
    _seen: dict[tuple[str, str], int] = field(default_factory=dict)
    _next: dict[int, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self, seconds: float, workers: int = 2) -> None:
        """Search for so long; the scenarios are shared among so many threads."""
        until = time.monotonic() + seconds
        for scenario in self.scenarios:
            is_first = scenario.name not in self.tallies
            self.tallies.setdefault(scenario.name, Tally(scenario.name))
            self._next[id(scenario)] = self.seed if is_first else draw_seed(), 0
        waiting = list(self.scenarios)

        def work() -> None:
            while not self._over.is_set() and time.monotonic() < until:
                with self._lock:
                    scenario = waiting.pop(0) if waiting else None
                if scenario is None:
                    return
                self._run_slice(scenario, until)
                with self._lock:
                    waiting.append(scenario)

        with ThreadPoolExecutor(workers) as pool:
            for future in [pool.submit(work) for _ in range(min(workers, len(waiting)))]:
                future.result()

    def run_fixed(self, count: int) -> None:
        """Make so many runs of each scenario, however long they take."""
        for scenario in self.scenarios:
            self.tallies[scenario.name] = Tally(scenario.name)
            for number in range(count):
                self._make_run(scenario, self.seed, number)

    def _run_slice(self, scenario: Scenario, until: float) -> None:
        end = min(until, time.monotonic() + SLICE)
        while not self._over.is_set() and time.monotonic() < end:
            seed, number = self._next[id(scenario)]
            count = scenario.runs(seed)
            try:
                if count is not None and number >= count:
                    raise IndexError
                self._make_run(scenario, seed, number)
            except IndexError:
                self._next[id(scenario)] = draw_seed(), 0
                continue
            self._next[id(scenario)] = seed, number + 1

    def _make_run(self, scenario: Scenario, seed: int, number: int) -> None:
        outcome = scenario.run(seed, number)
        if scenario.is_deterministic and number % REPEATED == REPEATED - 1 and not outcome.verdict:
            outcome = self._repeat(scenario, seed, number, outcome)
        self._count(scenario, seed, number, outcome)

    @staticmethod
    def _repeat(scenario: Scenario, seed: int, number: int, outcome: Outcome) -> Outcome:
        again = scenario.run(seed, number)
        if (again.verdict, again.steps, again.trace) == (outcome.verdict, outcome.steps, outcome.trace):
            return outcome
        text = f"not deterministic: {outcome.steps} steps, then {again.steps}"
        return Outcome(text, again.steps, again.faults, again.virtual, again.story, again.trace)

    def _count(self, scenario: Scenario, seed: int, number: int, outcome: Outcome) -> None:
        with self._lock:
            tally = self.tallies[scenario.name]
            tally.schedules += 1
            tally.steps += outcome.steps
            tally.faults += outcome.faults
        if outcome.verdict is None:
            return
        key = scenario.name, outcome.verdict.split(":")[0]
        with self._lock:
            self._seen[key] = self._seen.get(key, 0) + 1
            if self._seen[key] > MOST_FAILURES:
                self.suppressed += 1
                return
        shorter = scenario.shrink(seed, number, outcome)
        with self._lock:
            self.failures.append(Failure(scenario.name, outcome.verdict, seed, number, shorter))
        if self.stops_at_failure:
            self._over.set()
