# SPDX-License-Identifier: BSD-3-Clause
"""Time this tree beside a commit of its history: ``python -m tests.paired BASE``; or beside itself with other settings.

``python -m tests.paired --before OFIPY_STATS=no --now OFIPY_STATS=yes`` compares two environments of one build, and
``python -m tests.paired --wheel FILE`` a wheel with what the compiler of this machine makes of this tree. A guest
measures what was built outside (``--build``, and ``--built`` in the guest). Both sides are pinned to the same two
cores. Rounds of ``fabtests compare`` alternate between them, and each round of the one is divided by its neighbour of
the other, so what slows the machine down slows both. Both start several times, because the addresses that a process
gets change its speed by several percent for its whole life. Printed are the median of the ratios of all rounds, and
an interval that holds the true median of a start with 95 % confidence (order statistics of the starts' medians, which
assume nothing about the distribution). The exit code is 1 when the whole interval lies beyond the bound: above it for
times, below its inverse for rates.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from fabtests.compare.cases import CASES

from .builds import TREE, make_environment
from .commits import FOLDER, build, check_out, commit_of

SIDE = Path(__file__).with_name("paired_side.py")
CONFIDENCE = 0.95


def find_built(name: str) -> Path:
    """The interpreter of an earlier build."""
    python = FOLDER / name / "environment" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{python} is not there: --build makes it")
    return python


def get_sides(options: argparse.Namespace) -> tuple[Path, Path]:
    """The interpreters of both sides."""
    commit = None if options.base is None else commit_of(options.base)
    if options.built:
        present = find_built("present" if options.wheel is None else "wheel")
        return find_built(commit or "present"), present
    base = present = build("present", TREE)
    if options.wheel is not None:
        present = install_wheel(options.wheel)
    if commit is not None:
        base = build(commit, check_out(commit))
    return base, present


def install_wheel(file: Path) -> Path:
    """Install a wheel as users get it. Returns the interpreter that has it."""
    python = make_environment(FOLDER / "wheel" / "environment")
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "-q"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--force-reinstall", str(file)], check=True)
    return python


def cores() -> tuple[int, int]:
    """Two cores that this process may use; twice the same one if there is no second."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1] if len(usable) < 2 else usable[1]


class Side:
    """One of the two builds, in a process of its own, with variables of its own."""

    def __init__(self, python: Path, environment: dict[str, str]) -> None:
        command = [str(python), "-P", str(SIDE), *map(str, cores())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=os.environ | environment,
        )

    def take(self, order: dict[str, Any]) -> dict[str, Any]:
        """One round."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"a side ended with {self._process.wait()}")
        result: dict[str, Any] = json.loads(answer)
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin is not None
        with self._process:
            self._process.stdin.close()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """What holds their true median with the confidence above; all of them where there are too few."""
    ordered, below = sorted(ratios), 0
    # So many of n are below the median with a binomial distribution.
    beyond = tail = 0.5 ** len(ordered)
    while 2 * tail < 1 - CONFIDENCE and below < len(ordered) // 2:
        below += 1
        beyond = math.comb(len(ordered), below) * 0.5 ** len(ordered)
        tail += beyond
    below = max(below - 1, 0)
    return ordered[below], ordered[-1 - below]


def measure(sides: tuple[Side, Side], order: dict[str, Any], rounds: int) -> list[tuple[float, float]]:
    """Take the values of both sides, round by round. The sides take turns in starting a round."""
    if "count" not in order:
        order["count"] = sides[0].take(order)["count"]
    for side in sides:
        side.take(order)
    values = []
    for number in range(rounds):
        first = number % 2
        taken = {place: sides[place].take(order)["value"] for place in (first, 1 - first)}
        values.append((taken[0], taken[1]))
    return values


def setting(text: str) -> tuple[str, str]:
    """A variable of one side."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text}: NAME=VALUE is meant")
    return name, value


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.paired", description=__doc__)
    add = parser.add_argument
    add(
        "base",
        metavar="BASE",
        nargs="?",
        help="commit, branch or tag to compare with; default: this tree itself",
    )
    add("--wheel", metavar="FILE", type=Path, help="a wheel to compare with this tree, as the side 'now'")
    for side in ("before", "now"):
        add(
            f"--{side}",
            metavar="NAME=VALUE",
            type=setting,
            action="append",
            default=[],
            help=f"variable of the side {side!r} alone; may be repeated",
        )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--build", action="store_true", help="build both sides and stop, for --built elsewhere"
    )
    where.add_argument("--built", action="store_true", help="use the builds of --build, as in a guest")
    add("--case", default="shm-latency,tcp-latency", help="of fabtests compare (default: %(default)s)")
    add("--mode", default="native,prepared,blocking", help="default: %(default)s")
    add("--bytes", type=int, default=8, help="default: %(default)s")
    add("--rounds", type=int, default=31, help="of each row (default: %(default)s)")
    add(
        "--starts",
        type=int,
        default=9,
        help="of both sides, which share the rounds (default: %(default)s)",
    )
    add("--bound", type=float, default=1.05, help="of the ratio (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.base is not None and options.wheel is not None:
        parser.error("a wheel is compared with this tree: name no BASE")
    if options.base is None and options.wheel is None and dict(options.before) == dict(options.now):
        parser.error("nothing differs: name a BASE, a wheel, or variables of one side (--before, --now)")
    return options


def report_row(
    name: str, starts: list[list[tuple[float, float]]], bound: float, higher_is_better: bool
) -> bool:
    """Print the ratio of one row. Returns whether the whole interval is slower than the bound allows."""
    values = [both for start in starts for both in start]
    old, new = (statistics.median(side) for side in zip(*values, strict=True))
    ratio = statistics.median(present / base for base, present in values)
    low, high = interval([statistics.median(present / base for base, present in start) for start in starts])
    slower = high < 1 / bound if higher_is_better else low > bound
    print(
        f"{name}: {old:.4g} before, {new:.4g} now; ratio {ratio:.3f} [{low:.3f}, {high:.3f}] over {len(values)} rounds "
        f"in {len(starts)} starts{f', slower by more than {bound:g}' if slower else ''}",
        flush=True,
    )
    return slower


def main() -> None:
    options = parse()
    base, present = get_sides(options)
    if options.build:
        return
    orders = [
        {"case": case, "mode": mode, "bytes": options.bytes}
        for case in options.case.split(",")
        for mode in options.mode.split(",")
    ]
    rows: list[list[list[tuple[float, float]]]] = [[] for _ in orders]
    starts = min(options.starts, options.rounds)
    for start in range(starts):
        rounds = options.rounds * (start + 1) // starts - options.rounds * start // starts
        with Side(base, dict(options.before)) as before, Side(present, dict(options.now)) as now:
            for order, row in zip(orders, rows, strict=True):
                row.append(measure((before, now), order, rounds))
    exceeded = False
    for order, row in zip(orders, rows, strict=True):
        name = f"{order['case']} {order['mode']} {order['bytes']} B"
        higher_is_better = CASES[order["case"]].higher_is_better(order["mode"])
        exceeded |= report_row(name, row, options.bound, higher_is_better)
    sys.exit(1 if exceeded else 0)


if __name__ == "__main__":
    main()
