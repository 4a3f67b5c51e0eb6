# SPDX-License-Identifier: BSD-3-Clause
"""Rounds in which the ways take turns, and what they come to."""

import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .library import Library, Pair

__all__ = ["Case", "compute_spread", "list_cases", "measure_case"]

FEWEST = 3  # copies of a way in a round
CALIBRATION = 5  # copies that tell how many a round has


class Case(NamedTuple):
    """What is measured with every way."""

    scenario: int
    size: int


def list_cases(scenarios: Sequence[int], sizes: Sequence[int]) -> Iterator[Case]:
    """All of them, in the order of the table."""
    return (Case(scenario, size) for scenario in scenarios for size in sizes)


def compute_spread(values: Sequence[float]) -> float:
    """Interquartile range over median, in percent."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return 100 * (high - low) / middle


def average(values: Iterable[float]) -> float:
    """Mean of the middle half: it ignores interruptions, and has a finer resolution than the clock."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return statistics.fmean(ordered[quarter : len(ordered) - quarter])


def count_copies(pair: Pair, case: Case, seconds: float, turns: int) -> int:
    """How many copies of one way fill its share of the time."""
    start = time.perf_counter()
    pair.measure(case.scenario, 0, case.size, CALIBRATION)
    each = (time.perf_counter() - start) / CALIBRATION
    return max(FEWEST, int(seconds / turns / each))


def measure_case(
    library: Library, pair: Pair, case: Case, ways: Sequence[int], rounds: int, seconds: float
) -> list[dict[str, Any]]:
    """One row for each way. memcpy, which is way 0, must be among them."""
    count = count_copies(pair, case, seconds, rounds * len(ways))
    copied: dict[int, list[float]] = {way: [] for way in ways}
    total: dict[int, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        first = number % len(ways)
        for way in [*ways[first:], *ways[:first]]:
            copies, reads = pair.measure(case.scenario, way, case.size, count)
            copied[way].append(average(copies))
            total[way].append(average(map(sum, zip(copies, reads, strict=True))))
    return [
        {
            "scenario": library.scenarios[case.scenario],
            "bytes": case.size,
            "way": library.ways[way],
            "copies": count * rounds,
            "copy_us": round(statistics.median(copied[way]) / 1e3, 4),
            "copy_spread": round(compute_spread(copied[way]), 1),
            "copy_ratio": compute_ratio(copied[way], copied[0]),
            "total_us": round(statistics.median(total[way]) / 1e3, 4),
            "total_spread": round(compute_spread(total[way]), 1),
            "total_ratio": compute_ratio(total[way], total[0]),
        }
        for way in ways
    ]


def compute_ratio(times: Sequence[float], base: Sequence[float]) -> float:
    """The median of the ratios of the rounds."""
    return round(statistics.median(time / other for time, other in zip(times, base, strict=True)), 3)
