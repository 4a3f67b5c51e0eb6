# SPDX-License-Identifier: BSD-3-Clause
"""Run README's tests again and again, in random order, every other time on a busy machine.

``python -m tests.flakes 20`` runs them 20 times; beside every second run two processes spin. What they said adds up in
``build/flakes.json``: how many tests ran how often, and of each failure the run's seed, whether the machine was busy,
and the text. It exits with 1 if anything failed. ``pytest --shuffle SEED`` runs the tests in the order of that seed.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .builds import TREE

RESULTS = TREE / "build" / "flakes.json"
SPINNERS = 2


@dataclass
class Run:
    """One run of all tests."""

    seed: int
    busy: bool
    """Two processes spun beside it."""
    tests: int
    seconds: float
    failures: list[dict[str, str]] = field(default_factory=list)
    """Of each: ``test``, and the ``text`` of its report."""

    @property
    def line(self) -> str:
        """What is said of it as it ends."""
        machine = "busy" if self.busy else "quiet"
        return f"seed {self.seed}, {machine}: {self.tests} tests, {len(self.failures)} failed, {self.seconds:.0f} s"


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """Keep so many processes busy."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def run_tests(seed: int, busy: bool, arguments: list[str]) -> Run:
    """Run them once."""
    with tempfile.TemporaryDirectory() as folder, spinning(SPINNERS * busy):
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += [f"--shuffle={seed}", f"--hypothesis-seed={seed}"]
        started = time.monotonic()
        ended = subprocess.run(
            [*command, f"--junit-xml={report}", *arguments], cwd=TREE, stdout=subprocess.PIPE, text=True
        )
        run = Run(seed, busy, 0, time.monotonic() - started)
        if report.exists():
            read_report(report, run)
    if ended.returncode and not run.failures:
        run.failures.append({"test": f"pytest, exit code {ended.returncode}", "text": ended.stdout[-5000:]})
    return run


def read_report(report: Path, run: Run) -> None:
    """Count the tests, and keep what those said that failed."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        run.tests += 1
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                name = f"{case.get('classname')}::{case.get('name')}"
                run.failures.append({"test": name, "text": found.text or found.get("message", "")})


def keep(run: Run, file: Path) -> dict[str, Any]:
    """Add a run to the results of all, and return these."""
    kept = json.loads(file.read_text())["runs"] if file.exists() else []
    kept.append(asdict(run))
    results = {
        "runs": kept,
        "tests_times_runs": sum(each["tests"] for each in kept),
        "failed": sum(len(each["failures"]) for each in kept),
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.flakes", description=__doc__)
    parser.add_argument("runs", type=int, metavar="N", help="how often")
    parser.add_argument(
        "--seed", type=int, help="of the first run, the next has the next one; drawn unless given"
    )
    parser.add_argument("--json", action="store_true", help="print the runs as JSON at the end")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="where they add up")
    parser.add_argument("arguments", nargs="*", metavar="PATH", help="in place of README's tests")
    options = parser.parse_intermixed_args()
    first = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    runs = []
    for number in range(options.runs):
        run = run_tests(first + number, number % 2 == 1, options.arguments)
        results = keep(run, options.results)
        runs.append(run)
        out = sys.stderr if options.json else sys.stdout
        print(run.line, file=out, flush=True)
        for failure in run.failures:
            print(f"    {failure['test']}", file=out, flush=True)
    if options.json:
        print(json.dumps([asdict(run) for run in runs], indent=1))
    else:
        print(f"{options.results}: {results['tests_times_runs']} tests, {results['failed']} failed")
    sys.exit(any(run.failures for run in runs))


if __name__ == "__main__":
    main()
