# SPDX-License-Identifier: BSD-3-Clause
"""Traces of repaired mistakes. Each is reached with the repair too, so that a stale one is noticed."""

from dataclasses import replace
from pathlib import Path

from .build import Build
from .report import TRACES, read_trace, replay_trace, write_trace
from .scenario import CannotRun, Scenario
from .scenarios import list_scenarios
from .search import Failure

__all__ = ["record_undone", "replay_traces"]


def record_undone(path: Path, failure: Failure, undone: Build) -> bool:
    """Record what a search over a copy has found. Returns whether a trace is left.

    With the repair a run goes another way from the mistake on. So decisions are left out, from the last one, until all
    others are reached with the repair; and what is left must still fail without it.
    """
    here, there = (find_scenario(build, failure.scenario) for build in (Build(), undone))
    try:
        here.prepare()
        there.prepare()
        trace = failure.outcome.trace
        while trace and here.run(failure.seed, failure.number, trace).is_stale:
            trace = trace[:-1]
        outcome = there.run(failure.seed, failure.number, trace)
        passes = not here.run(failure.seed, failure.number, trace).verdict
    finally:
        here.close()
        there.close()
    if not outcome.verdict or not passes:
        return False
    write_trace(path, replace(failure, verdict=outcome.verdict, outcome=replace(outcome, trace=trace)))
    return True


def find_scenario(build: Build, name: str) -> Scenario:
    """The scenario of this name over a build."""
    return next(each for each in list_scenarios(build) if each.name == name)


def replay_traces(scenarios: list[Scenario]) -> list[Failure]:
    """Make the recorded runs of these scenarios again. Returns those that fail, or are stale."""
    named = {scenario.name: scenario for scenario in scenarios}
    failures = []
    for path in sorted(TRACES.glob("*.json")):
        name, seed, number, trace = read_trace(path)
        if name not in named:
            raise CannotRun(f"{path.name} is of {name}, which is none of the scheduled scenarios")
        outcome = replay_trace(named[name], seed, number, trace)
        if outcome.verdict:
            failures.append(Failure(name, f"{path.name}: {outcome.verdict}", seed, number, outcome))
    return failures
