# SPDX-License-Identifier: BSD-3-Clause
"""Several runs of the same rows: how far each row lies apart between them.

The spread of a row within a run is that of its rounds, which the same processes took within seconds. Between runs the
processes are others, and the machine may be as well.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console
from rich.table import Table

from fabtests.compare.runner import Row
from fabtests.compare.statistics import round_digits
from fabtests.compare.tables import show_mode, show_number, show_quotient, show_size, show_units
from ofipy.cli.tables import print_table

__all__ = ["Range", "Repeated", "gather_repeats", "print_repeats"]


@dataclass(frozen=True, slots=True)
class Range:
    """One figure over the runs."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Self | None:
        """The range of the values that are there; None when none is."""
        there = [value for value in values if value is not None]
        return cls(statistics.median(there), min(there), max(there)) if there else None

    def document(self) -> dict[str, float | None]:
        """As it stands in the JSON document."""
        return {
            "median": round_digits(self.median),
            "min": round_digits(self.low),
            "max": round_digits(self.high),
        }


@dataclass(frozen=True, slots=True)
class Repeated:
    """A row of each run."""

    rows: tuple[Row, ...]

    @property
    def value(self) -> Range:
        """Ofipy's value."""
        found = Range.of(row.own.value for row in self.rows)
        assert found is not None, "a run has each row"
        return found

    @property
    def best(self) -> Range | None:
        """The ratio to the best peer of each run, which need not be the same in all."""
        return Range.of(best.ratio for row in self.rows if (best := row.best()) is not None)

    def ratios(self) -> dict[str, Range | None]:
        """The ratio to each peer, as far as a spread within the run did not forbid it."""
        names = dict.fromkeys(name for row in self.rows for name in row.peers)
        return {
            name: Range.of(row.peers[name].ratio for row in self.rows if name in row.peers) for name in names
        }

    def count_bars(self) -> tuple[int, int]:
        """How often a bar was met, and how often one was judged."""
        verdicts = [met for row in self.rows for _, met in row.bars() if met is not None]
        return sum(verdicts), len(verdicts)

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        met, judged = self.count_bars()
        return {
            **self.rows[0].identity(),
            "runs": len(self.rows),
            "value": self.value.document(),
            "ratios": {name: each and each.document() for name, each in self.ratios().items()},
            "best": {
                "peers": sorted({best.peer for row in self.rows if (best := row.best()) is not None}),
                "ratio": self.best and self.best.document(),
            },
            "bars": {"met": met, "judged": judged},
        }


def gather_repeats(runs: Sequence[Sequence[Row]]) -> list[Repeated]:
    """The rows of several runs of one plan, row by row."""
    return [Repeated(rows) for rows in zip(*runs, strict=True)]


def print_repeats(console: Console, repeats: Sequence[Repeated]) -> None:
    """Print a table for each case."""
    for name in dict.fromkeys(each.rows[0].case.name for each in repeats):
        print_table(console, build_table([each for each in repeats if each.rows[0].case.name == name]))


def build_table(repeats: Sequence[Repeated]) -> Table:
    """The table of one case."""
    rows = [each.rows[0] for each in repeats]
    case, count = rows[0].case, len(repeats[0].rows)
    title = f"{case.name} in {count} runs ({show_units(rows)})"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column(f"mode, {case.size_key}", no_wrap=True)
    for heading in ("median", "min", "max", "× best", "min", "max", "bars met"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row, each in zip(rows, repeats, strict=True):
        met, judged = each.count_bars()
        table.add_row(
            f"{show_mode(row)}, {show_size(row)}",
            *map(show_number, (each.value.median, each.value.low, each.value.high)),
            *(
                map(show_quotient, (each.best.median, each.best.low, each.best.high))
                if each.best
                else ("?",) * 3
            ),
            f"{met} of {judged}" if judged else "-",
        )
    return table
