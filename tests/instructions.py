# SPDX-License-Identifier: BSD-3-Clause
"""Count the instructions of a native 8-byte send and receive over shm, beside earlier commits: ``python -m
tests.instructions``.

Callgrind counts what is spent within the core's public calls, in two runs whose difference is so many rounds; a call
of progress that finds nothing is subtracted. The commits, and how many more the present may need, are in
``baselines.toml``.
A count does not depend on how busy the machine is, but on the compiler: all are built here, alike.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from .builds import TREE
from .paired import build, check_out, commit_of

SIDE = Path(__file__).with_name("instructions_side.py")
BASELINES = Path(__file__).with_name("baselines.toml")
CALLS = ("ofp_post", "ofp_domain_progress", "ofp_cq_read")
FEW, MANY = 500, 1500


def total(python: Path, rounds: int, what: str) -> int:
    """Instructions within the calls, all rounds together."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        run = [*valgrind, str(python), "-P", str(SIDE), str(rounds), what]
        ended = subprocess.run(run, capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(f"{' '.join(run)}:\n{ended.stderr}")
        annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--auto=no", str(out)]
        listed = subprocess.run(annotate, capture_output=True, text=True, check=True).stdout
    found = dict.fromkeys(CALLS, 0)
    for line in listed.splitlines():
        row = re.match(r"\s*([\d,]+)\s.*?:(\w+)", line)
        if row and row[2] in found:
            found[row[2]] = int(row[1].replace(",", ""))
    return sum(found.values())


def count(python: Path) -> float:
    """Instructions of one send and receive."""
    transfer, progress = (
        (total(python, MANY, what) - total(python, FEW, what)) / (MANY - FEW)
        for what in ("transfer", "progress")
    )
    return transfer - progress


def main() -> None:
    if not shutil.which("valgrind"):
        sys.exit("valgrind is needed: apt install valgrind")
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
