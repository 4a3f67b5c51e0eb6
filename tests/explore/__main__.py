# SPDX-License-Identifier: BSD-3-Clause
"""The command: see docs/explanation/exploring.md.

Exit status 0: nothing was found, or with ``--undo`` everything was found again; 1: otherwise; 2: it cannot run.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path

from .build import Build
from .report import (
    Document,
    add_to_report,
    make_document,
    print_failure,
    read_trace,
    replay_line,
    replay_trace,
    write_trace,
)
from .scenario import CannotRun, Scenario, format_seed, parse_seed
from .scenarios import list_scenarios
from .search import Failure, Search, Tally, draw_seed
from .undone import find_again, list_undos

SECONDS = 60.0
UNDO_SECONDS = 60.0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.explore",
        description="Run programs of ofipy with a fault at every step, and with threads in every order.",
    )
    add = parser.add_argument
    add("--seconds", type=float, help="of the search; with --undo for each undo at most (default: 60)")
    add("--scenario", metavar="NAME", help="only this one, or those whose names begin with NAME/")
    add("--undo", metavar="NAME|all", help="undo a repair in a copy, and search for what it repaired")
    add("--replay", metavar="SEED:NUMBER|FILE", help="one run again; a seed needs --scenario")
    add(
        "--record",
        type=Path,
        metavar="FOLDER",
        help="write the trace of each failure to a file, for --replay",
    )
    add("--report", type=Path, metavar="FILE", help="add the results to this JSON file")
    add("--json", action="store_true", help="print one JSON document")
    return parser.parse_args()


def choose(scenarios: list[Scenario], wanted: str | None) -> list[Scenario]:
    """The wanted scenarios."""
    if wanted is None:
        return scenarios
    chosen = [each for each in scenarios if each.name == wanted or each.name.startswith(f"{wanted}/")]
    if not chosen:
        raise CannotRun(
            f"there is no scenario {wanted}; there are {', '.join(each.name for each in scenarios)}"
        )
    return chosen


def search(options: argparse.Namespace) -> tuple[Document, bool]:
    """Search, with a fresh seed."""
    scenarios = choose(list_scenarios(Build()), options.scenario)
    seed, seconds = draw_seed(), options.seconds or SECONDS
    try:
        for scenario in scenarios:
            scenario.prepare()
        found = Search(scenarios, seed)
        found.run(seconds)
    finally:
        for scenario in scenarios:
            scenario.close()
    for failure in found.failures:
        print_failure(failure)
        if options.record:
            name = f"{failure.scenario.replace('/', '-')}-{format_seed(failure.seed)}-{failure.number}.json"
            write_trace(options.record / name, failure)
    print_tallies(list(found.tallies.values()))
    if found.suppressed:
        print(f"{found.suppressed} more with the same verdicts")
    print(f"seed {format_seed(seed)}: {len(found.failures) + found.suppressed} failures")
    document = make_document(seed, found.tallies.values(), found.failures, (), scenarios)
    return document, not found.failures


def print_tallies(tallies: list[Tally]) -> None:
    """What was done, a line for each scenario."""
    width = max(len(tally.name) for tally in tallies)
    print(f"\n{'scenario':{width}} {'schedules':>10} {'steps':>12} {'faults':>8}")
    for tally in tallies:
        print(f"{tally.name:{width}} {tally.schedules:>10,} {tally.steps:>12,} {tally.faults:>8,}")


def undo(options: argparse.Namespace) -> tuple[Document, bool]:
    """Undo repairs, and find again what they repaired."""
    results = find_again(list_undos(options.undo), options.seconds or UNDO_SECONDS, options.record)
    for _, failure in results:
        if failure is not None and options.undo != "all":
            print_failure(failure)
    rows = [row for row, _ in results]
    count = sum(row["found"] for row in rows)
    print(f"{count} of {len(rows)} found")
    return make_document(draw_seed(), (), (), rows, ()), count == len(rows)


def replay(options: argparse.Namespace) -> tuple[Document, bool]:
    """Make one run again."""
    path, trace = Path(options.replay), None
    if path.exists():
        name, seed, number, trace = read_trace(path)
    elif options.scenario is None:
        raise CannotRun("--replay SEED:NUMBER needs --scenario NAME")
    else:
        name, (seed, number) = options.scenario, parse_seed(options.replay)
    scenarios = [each for each in list_scenarios(Build()) if each.name == name]
    if not scenarios:
        raise CannotRun(f"there is no scenario {name}")
    scenario = scenarios[0]
    try:
        scenario.prepare()
        outcome = replay_trace(scenario, seed, number, trace)
    finally:
        scenario.close()
    failures = []
    if outcome.verdict:
        failures.append(Failure(name, outcome.verdict, seed, number, outcome))
        print_failure(failures[0])
    else:
        print(f"nothing is wrong: {outcome.steps} steps, {outcome.faults} faults")
        print(f"again: {replay_line(name, seed, number)}")
    tally = Tally(name, 1, outcome.steps, outcome.faults)
    return make_document(seed, [tally], failures, (), scenarios), not failures


def main() -> int:
    options = parse()
    mode = undo if options.undo else replay if options.replay else search
    begin = time.monotonic()
    try:
        # With --json the document is all that is printed on the standard output.
        with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
            document, is_right = mode(options)
    except (CannotRun, ValueError) as error:
        print(f"tests.explore cannot run: {error}", file=sys.stderr)
        return 2
    if options.report:
        add_to_report(options.report, document, time.monotonic() - begin)
    if options.json:
        print(json.dumps(document, indent=1))
    return 0 if is_right else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    sys.exit(main())
