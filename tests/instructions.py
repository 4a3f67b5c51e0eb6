# SPDX-License-Identifier: BSD-3-Clause
"""Count the instructions of a native 8-byte send and receive over shm, beside earlier commits: ``python -m
tests.instructions``.

Callgrind counts what is spent within the core's public calls, in two runs whose difference is so many rounds; a call
of progress that finds nothing is subtracted. The commits, and how many more the present may need, are in
``baselines.toml``.
A count does not depend on how busy the machine is, but on the compiler: all are built here, alike.

``--python`` counts a send and receive of Python programs instead, in the present tree only: all instructions of
the process, by the library that they are in, and the calls that allocate memory.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from .builds import TREE
from .commits import build, check_out, commit_of

SIDE = Path(__file__).with_name("instructions_side.py")
BASELINES = Path(__file__).with_name("baselines.toml")
CALLS = ("ofp_post", "ofp_domain_progress", "ofp_cq_read")
# Part of those calls, but done by the clock: every 100 us, and so in nearly each round under callgrind.
BY_THE_CLOCK = "ofpi_domain_levels_write"
FEW, MANY = 500, 1500


# The libraries of a build, and what they are called in a table.
LIBRARIES = {
    "_requests": "requests (C)",
    "_ofp": "core",
    "_shm": "shm",
    "python": "interpreter",
    "libpython": "interpreter",
}
ALLOCATIONS = ("malloc", "calloc", "realloc", "_PyObject_Malloc", "_PyObject_Calloc", "_PyObject_Realloc")


def run_callgrind(out: Path, python: Path, rounds: int, what: str) -> None:
    """Write callgrind's counts of all rounds."""
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    run = [*valgrind, str(python), "-P", str(SIDE), str(rounds), what]
    # With random hashes, two runs differ in the collisions of dictionaries. A second thread of OpenBLAS would spin.
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
    if ended.returncode:
        sys.exit(f"{' '.join(run)}:\n{ended.stderr}")


def total(python: Path, rounds: int, what: str) -> int:
    """Instructions within the calls, all rounds together."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        run_callgrind(out, python, rounds, what)
        annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", str(out)]
        listed = subprocess.run(annotate, capture_output=True, text=True, check=True).stdout
    found = dict.fromkeys((*CALLS, BY_THE_CLOCK), 0)
    for line in listed.splitlines():
        row = re.match(r"\s*([\d,]+)\s.*?:(\w+)", line)
        if row and row[2] in found:
            found[row[2]] = int(row[1].replace(",", ""))
    return sum(found[call] for call in CALLS) - found[BY_THE_CLOCK]


def count(python: Path) -> float:
    """Instructions of one send and receive."""
    transfer, progress = (
        (total(python, MANY, what) - total(python, FEW, what)) / (MANY - FEW)
        for what in ("transfer", "progress")
    )
    return transfer - progress


def name_library(path: str) -> str:
    """What a library is called in the table."""
    return LIBRARIES.get(re.match(r"[a-z_]*", Path(path).name)[0], "others")  # type: ignore[index]


def read_counts(out: Path) -> Counter[str]:
    """Instructions by library, and calls of functions that allocate, in a file of callgrind."""
    texts: dict[tuple[str, str], str] = {}
    counts: Counter[str] = Counter()
    library = called = ""
    is_call = False
    for line in out.read_text(errors="replace").splitlines():
        if named := re.match(r"(c?)(ob|fn)=(\(\d+\))(?: (.*))?$", line):
            key = named[2], named[3]
            text = texts.setdefault(key, named[4] or "")
            if named[2] == "ob" and not named[1]:
                library = name_library(text)
            elif named[2] == "fn" and named[1]:
                called = text
        elif line.startswith("calls="):
            is_call = True  # the next line has the instructions within the call
            if called in ALLOCATIONS:
                counts[called] += int(line[len("calls=") :].split()[0])
        elif re.match(r"[+\-*\d]", line):
            counts[library] += 0 if is_call else int(line.split()[1])
            is_call = False
    return counts


def count_python(python: Path, what: str) -> dict[str, float]:
    """Instructions by library, and allocating calls, of one send and receive."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        taken = []
        for rounds in (FEW, MANY):
            run_callgrind(out, python, rounds, what)
            taken.append(read_counts(out))
    few, many = taken
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in many}


def report_python() -> None:
    """Print both modes beside each other."""
    python = build("present", TREE)
    modes = {what: count_python(python, what) for what in ("prepared", "blocking")}
    print(f"{'':18}{''.join(f'{what:>10}' for what in modes)}")
    for name in sorted(set().union(*modes.values())):
        row = [counts.get(name, 0) for counts in modes.values()]
        if any(value >= 0.1 for value in row):
            print(f"{name:18}{''.join(f'{value:10.1f}' for value in row)}")
    sums = [
        sum(value for name, value in counts.items() if name not in ALLOCATIONS) for counts in modes.values()
    ]
    print(f"{'all instructions':18}{''.join(f'{value:10.1f}' for value in sums)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.instructions", description=__doc__)
    parser.add_argument("--python", action="store_true", help="count a send and receive of Python programs")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("valgrind is needed: apt install valgrind")
    if options.python:
        report_python()
        return
    present = count(build("present", TREE))
    print(f"present: {present:.0f} instructions")
    failed = False
    for name, baseline in tomllib.loads(BASELINES.read_text()).items():
        commit = commit_of(baseline["commit"])
        before = count(build(commit, check_out(commit)))
        more, bound = present - before, baseline["instructions"]
        failed |= more > bound
        print(f"{name} ({commit[:7]}): {before:.0f}, the present {more:+.0f}, at most {bound:+d}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
