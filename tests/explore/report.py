# SPDX-License-Identifier: BSD-3-Clause
"""What a search prints, and what it writes: the JSON document, and the report that adds up over runs."""

import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.builds import TREE

from .scenario import Decision, Outcome, Scenario, format_seed
from .search import Failure, Tally

__all__ = [
    "TRACES",
    "Document",
    "add_to_report",
    "make_document",
    "print_failure",
    "read_trace",
    "replay_trace",
    "write_trace",
]

Document = dict[str, Any]
STORY = 40  # lines
TRACES = Path(__file__).with_name("traces")
"""Recorded traces: each was a failure, and its run must pass now."""


def find_commit() -> str:
    """The commit of the tree, with ``+`` if files were changed; empty outside of a repository, or without git."""
    if not (git := shutil.which("git")):
        return ""
    done = subprocess.run(
        [git, "-C", str(TREE), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def replay_line(scenario: str, seed: int, number: int) -> str:
    """The command that makes the run again."""
    return f"python -m tests.explore --scenario {scenario} --replay {format_seed(seed, number)}"


def print_failure(failure: Failure) -> None:
    """A failure for people: what, where, who did what, and how to see it again."""
    outcome = failure.outcome
    print(f"\nFAILED {failure.scenario}: {failure.verdict}")
    size = f"{len(outcome.trace)} decisions, {outcome.faults} faults, {outcome.steps} steps"
    virtual = f", virtual {outcome.virtual:.3f} s" if outcome.virtual else ""
    print(f"seed {format_seed(failure.seed, failure.number)}: {size}{virtual}")
    for decision in outcome.trace[:STORY]:
        print(f"  decided: {decision.thread} {decision.function} {decision.occurrence}: {decision.action}")
    if len(outcome.trace) > STORY:
        print(f"  … and {len(outcome.trace) - STORY} decisions")
    for line in outcome.story[:STORY]:
        print(f"    {line}")
    if len(outcome.story) > STORY:
        print(f"    … and {len(outcome.story) - STORY} lines")
    print(f"again: {replay_line(failure.scenario, failure.seed, failure.number)}", flush=True)


def make_document(
    seed: int,
    tallies: Iterable[Tally],
    failures: Sequence[Failure],
    undone: Sequence[Document],
    scenarios: Iterable[Scenario],
) -> Document:
    """The JSON document."""
    missing = sorted({text for scenario in scenarios for text in scenario.not_covered})
    return {
        "schema": 1,
        "commit": find_commit(),
        "seed": format_seed(seed),
        "scenarios": [asdict(tally) for tally in tallies],
        "undone": list(undone),
        "failures": [
            {
                "scenario": failure.scenario,
                "verdict": failure.verdict,
                "seed": format_seed(failure.seed, failure.number),
                "trace": [asdict(decision) for decision in failure.outcome.trace],
            }
            for failure in failures
        ],
        "not_covered": missing,
    }


def add_to_report(path: Path, document: Document, seconds: float) -> None:
    """Add a search to the report in a file, which is created if it is not there."""
    total: Document = {"schema": 1, "seconds": 0.0, "commits": [], "seeds": [], "scenarios": [], "undone": []}
    total |= {"failures": [], "not_covered": []}
    if path.exists():
        total = json.loads(path.read_text())
    total["seconds"] = round(total["seconds"] + seconds, 1)
    total["seeds"].append(document["seed"])
    if document["commit"] not in total["commits"]:
        total["commits"].append(document["commit"])
    sums = {row["name"]: row for row in total["scenarios"]}
    for row in document["scenarios"]:
        old = sums.setdefault(row["name"], {"name": row["name"], "schedules": 0, "steps": 0, "faults": 0})
        for key in ("schedules", "steps", "faults"):
            old[key] += row[key]
    total["scenarios"] = [sums[name] for name in sorted(sums)]
    undone = {row["name"]: row for row in (*total["undone"], *document["undone"])}
    total["undone"] = [undone[name] for name in sorted(undone)]
    total["failures"] += document["failures"]
    total["not_covered"] = sorted({*total["not_covered"], *document["not_covered"]})
    path.write_text(json.dumps(total, indent=1) + "\n")


def read_trace(path: Path) -> tuple[str, int, int, tuple[Decision, ...]]:
    """Scenario, seed, number and decisions of a recorded trace."""
    values = json.loads(path.read_text())
    seed, _, number = values["seed"].partition(":")
    outcome = Outcome.from_json({"trace": values["trace"]})
    return values["scenario"], int(seed, 16), int(number or 0), outcome.trace


def write_trace(path: Path, failure: Failure) -> None:
    """Record the trace of a failure, for :func:`read_trace`."""
    values = {
        "scenario": failure.scenario,
        "verdict": failure.verdict,
        "seed": format_seed(failure.seed, failure.number),
        "trace": [asdict(decision) for decision in failure.outcome.trace],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1) + "\n")


def replay_trace(scenario: Scenario, seed: int, number: int, trace: Sequence[Decision] | None) -> Outcome:
    """Make a run again. A trace whose decisions are not reached gives a verdict."""
    outcome = scenario.run(seed, number, trace)
    if trace and outcome.is_stale and not outcome.verdict:
        place = trace[0]
        text = f"stale trace: not all is reached of {place.thread} {place.function} {place.occurrence} and what follows"
        return Outcome(text, outcome.steps, trace=outcome.trace, is_stale=True)
    return outcome
