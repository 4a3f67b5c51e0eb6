# SPDX-License-Identifier: BSD-3-Clause
"""What the tests reach of the core, the providers and the package: lines, branches, and functions that no test enters.

``python -m tests.coverage`` builds this tree with gcov's counters into an environment of its own under ``build/``,
again only what has changed, runs the native tests, the unit tests and the conformance suite over shm, tcp and the fake
provider there, and prints a table with a row for each file and the functions that nothing reached. What follows its
name goes to pytest besides: ``--provider ofi:tcp``. The tests are judged elsewhere: here a failure is only reported,
since a counter costs time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .builds import TREE, install, make_environment

BUILD = TREE / "build" / "coverage"
# Threads count in the same counters.
OPTIONS = ("-Db_coverage=true", "-Dbuildtype=debug", "-Dc_args=-fprofile-update=atomic", "-Dwerror=false")
SUITES = ("tests/unit", "tests/conformance", *(f"--provider={name}" for name in ("shm", "tcp", "fake")))
DATA = BUILD / "python" / "data"


@dataclass(frozen=True, slots=True)
class Row:
    """One file: how many lines and branches there are, how many were reached, and the functions that were not."""

    path: str
    lines: int
    lines_reached: int
    branches: int
    branches_reached: int
    missed: tuple[str, ...] = ()


def build() -> Path:
    """Build the package and the native tests with counters, all at zero. Returns the interpreter."""
    python = make_environment(BUILD / "environment")
    install(python, TREE, build=BUILD / "package", options=OPTIONS)
    # Its build imports ofipy, to ask where the headers are. Itself it is not measured.
    install(python, TREE / "tests" / "fake_provider", build=BUILD / "fake")
    site = next((BUILD / "environment").glob("lib/python*/site-packages"))
    (site / "measure.pth").write_text("import coverage; coverage.process_startup()\n")
    native = BUILD / "native"
    if not (native / "build.ninja").exists():
        run("meson", "setup", str(native), "-Dpython=false", "-Dtests=enabled", *OPTIONS)
    run("ninja", "-C", str(native), "--quiet")
    DATA.parent.mkdir(exist_ok=True)
    for old in [*BUILD.rglob("*.gcda"), *DATA.parent.iterdir()]:
        old.unlink()
    return python


def run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=TREE)


def reach(python: Path, suites: Iterable[str]) -> None:
    """Run all tests; every process that they start counts too."""
    variables = {
        "COVERAGE_PROCESS_START": str(TREE / "pyproject.toml"),
        "COVERAGE_FILE": str(DATA),
        "PYTHONSAFEPATH": "1",
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
    }
    native = ["meson", "test", "-C", str(BUILD / "native"), "--no-rebuild", "--timeout-multiplier", "5"]
    for command in native, [str(python), "-m", "pytest", "-q", "-n", "2", *suites]:
        subprocess.run(command, check=False, cwd=TREE, env=os.environ | variables)


def rows_of_c() -> Iterator[Row]:
    """Of the sources and headers; what a header defines for several sources counts once."""
    report = BUILD / "c.json"
    kept = ["--filter", "native/", "--filter", "providers/", "--filter", "ofipy/"]
    # The branch on which an assertion fails is no test's.
    how = ["--exclude-branches-by-pattern", r".*\bassert\(.*", "--merge-mode-functions", "separate"]
    run(
        "gcovr",
        "--root",
        str(TREE),
        *kept,
        *how,
        "--json",
        str(report),
        str(BUILD / "native"),
        str(BUILD / "package"),
    )
    for file in json.loads(report.read_text())["files"]:
        branches = [branch for line in file["lines"] for branch in line["branches"]]
        entered: dict[str, int] = {}
        for function in (each for each in file["functions"] if not each.get("gcovr/excluded")):
            entered[function["name"]] = entered.get(function["name"], 0) + function["execution_count"]
        yield Row(
            file["file"],
            len(file["lines"]),
            sum(line["count"] > 0 for line in file["lines"]),
            len(branches),
            sum(branch["count"] > 0 for branch in branches),
            tuple(sorted(name for name, count in entered.items() if not count)),
        )


def rows_of_python() -> Iterator[Row]:
    how = [f"--rcfile={TREE / 'pyproject.toml'}", f"--data-file={DATA}"]
    report = BUILD / "python.json"
    run(sys.executable, "-P", "-m", "coverage", "combine", "-q", *how)
    run(sys.executable, "-P", "-m", "coverage", "json", "-q", *how, "-o", str(report))
    for path, file in json.loads(report.read_text())["files"].items():
        total = file["summary"]
        yield Row(
            path.rpartition("site-packages/")[2],
            total["num_statements"],
            total["covered_lines"],
            total["num_branches"],
            total["covered_branches"],
            tuple(
                sorted(name for name, region in file["functions"].items() if never_entered(region["summary"]))
            ),
        )


def never_entered(summary: dict[str, Any]) -> bool:
    return summary["num_statements"] > 0 and summary["covered_lines"] == 0


def total(name: str, rows: Iterable[Row]) -> Row:
    rows = list(rows)
    counts = ("lines", "lines_reached", "branches", "branches_reached")
    return Row(name, *(sum(getattr(row, count) for row in rows) for count in counts))


def table(rows: list[Row]) -> Iterator[str]:
    yield f"{'':52}{'lines':>8}{'reached':>9}{'branches':>10}{'reached':>9}"
    for row in rows:
        lines, branches = share(row.lines_reached, row.lines), share(row.branches_reached, row.branches)
        yield f"{row.path:52}{row.lines:8}{lines:>9}{row.branches:10}{branches:>9}"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def main() -> None:
    python = build()
    reach(python, [*SUITES, *sys.argv[1:]])
    c, modules = list(rows_of_c()), list(rows_of_python())
    for name, rows in ("C", c), ("Python", modules):
        print(
            f"\n{name}",
            *table([*sorted(rows, key=lambda row: row.path), total(f"all of {name}", rows)]),
            sep="\n",
        )
    print("\nfunctions that no test enters")
    for row in [*c, *modules]:
        if row.missed:
            print(f"{row.path}: {' '.join(row.missed)}")


if __name__ == "__main__":
    main()
