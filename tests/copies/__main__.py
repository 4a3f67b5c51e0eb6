# SPDX-License-Identifier: BSD-3-Clause
"""Time ways of copying memory between two cores: ``python -m tests.copies``.

Two threads on two cores hand buffers over as the processes of shm do. The ways of copying take turns, round by round.
Printed are the times relative to libc's memcpy, in the same rounds. The time of a copy includes the read of its target
where a program of shm reads it next.

The scenarios are the pipeline (``fragment``: 16 KiB into a bounce buffer on one core, out of it on the other;
``fragment-in`` and ``fragment-out``: only that half the given way), a receive from an arena that the sender has just
written or not written (``mapped-written``, ``mapped-idle``), and a write to an arena that the target reads or does not
read (``write-read``, ``write-idle``; ``write-zeros``: the same with zeros only, which some processors store faster).
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .library import Library
from .machine import describe, describe_caches
from .measure import list_cases, measure_case

SIZES = tuple(1 << exponent for exponent in (12, 14, 16, 18, 20, 22))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.copies", description=__doc__)
    add = parser.add_argument
    add("--json", action="store_true", help="print one JSON document")
    add("--seconds", type=float, default=3, help="of each scenario and size (default: %(default)s)")
    add(
        "--rounds", type=int, default=9, help="in which the ways take turns, 2 or more (default: %(default)s)"
    )
    add("--scenario", default="", metavar="NAME[,NAME]", help="default: all")
    add(
        "--way", default="", metavar="NAME[,NAME]", help="beside memcpy; default: all that this processor has"
    )
    add("--bytes", default=",".join(map(str, SIZES)), metavar="N[,N]", help="default: %(default)s")
    return parser.parse_args()


def choose(names: Sequence[str], wanted: str) -> list[int]:
    """Places of the wanted names; of all if none is wanted."""
    missing = set(filter(None, wanted.split(","))) - set(names)
    if missing:
        sys.exit(f"there is no {' and no '.join(sorted(missing))}; there are {', '.join(names)}")
    return [place for place, name in enumerate(names) if not wanted or name in wanted.split(",")]


def choose_cores() -> tuple[int, int]:
    """Two cores that this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        sys.exit("two processor cores are needed")
    return usable[0], usable[1]


def size_name(size: int) -> str:
    """The size as it is written."""
    return f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB" if size >> 10 else f"{size} B"


def print_table(rows: Sequence[dict[str, Any]], ways: Sequence[str], key: str) -> None:
    """One line for each scenario and size: the time by memcpy, and the ratios of the others, with spreads."""
    print(f"| scenario | size | {ways[0]}, µs | {' | '.join(ways[1:])} |")
    print("|---" * (len(ways) + 2) + "|")
    for start in range(0, len(rows), len(ways)):
        base, *others = rows[start : start + len(ways)]
        cells = [f"{row[f'{key}_ratio']:.2f} ± {row[f'{key}_spread']:.0f} %" for row in others]
        first = f"{base[f'{key}_us']:.3g} ± {base[f'{key}_spread']:.0f} %"
        print(f"| `{base['scenario']}` | {size_name(base['bytes'])} | {first} | {' | '.join(cells)} |")


def print_report(document: dict[str, Any]) -> None:
    """The document for people."""
    machine = document["machine"]
    print(
        f"{machine['processor']}, {machine['libc']}, cores {machine['pinned']}, steal {machine['steal_percent']} %"
    )
    print(f"flags: {', '.join(machine['flags']) or 'none'}")
    print(describe_caches(machine))
    for key, title in (("total", "Copy and read"), ("copy", "Copy alone")):
        print(f"\n{title}: time by memcpy, and the other ways ÷ memcpy\n")
        print_table(document["rows"], document["ways"], key)


def main() -> None:
    options = parse()
    cores = choose_cores()
    sizes = [int(size) for size in options.bytes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        library = Library(Path(folder))
    supported = [way for way in choose(library.ways, options.way) if library.is_supported(way)]
    ways = [0, *(way for way in supported if way)]
    rows: list[dict[str, Any]] = []
    finish = describe(cores)
    with library.open_pair(cores, max(sizes)) as pair:
        for case in list_cases(choose(library.scenarios, options.scenario), sizes):
            rows += measure_case(library, pair, case, ways, options.rounds, options.seconds)
    document = {"machine": finish(), "ways": [library.ways[way] for way in ways], "rows": rows}
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        print_report(document)


if __name__ == "__main__":
    main()
