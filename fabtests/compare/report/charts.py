# SPDX-License-Identifier: BSD-3-Clause
"""The charts of a result: what is drawn, without a word on how."""

from dataclasses import dataclass, field
from typing import Any

from fabtests.compare.tables import UNITS

__all__ = ["Chart", "Series", "charts_of"]

Document = dict[str, Any]


@dataclass(slots=True)
class Series:
    """One line of a chart."""

    name: str
    own: bool
    """Of ofipy, rather than of a peer."""
    sizes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Chart:
    """Values of one case and unit over the size of a message, both on logarithmic axes."""

    case: str
    unit: str
    size_key: str
    """``bytes``, or ``depth``."""
    higher_is_better: bool
    series: dict[str, Series] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What is shown, and which direction is the good one."""
        return f"{self.case}, {self.unit} ({'more' if self.higher_is_better else 'less'} is better)"

    @property
    def name(self) -> str:
        """For a file."""
        return f"{self.case}-{self.unit.replace('/', '-per-').replace('µ', 'u')}"

    @property
    def sizes(self) -> list[int]:
        """All that occur."""
        return sorted({size for series in self.series.values() for size in series.sizes})

    def add(self, name: str, size: int, value: float, *, own: bool) -> None:
        """Enter a value; a peer that stands beside several modes at one size is drawn once."""
        series = self.series.setdefault(name, Series(name, own))
        if size not in series.sizes:
            series.sizes.append(size)
            series.values.append(value)


def charts_of(document: Document) -> list[Chart]:
    """The charts of a result, one for each case and unit, in the order of its rows.

    Parameters
    ----------
    document : dict
        As printed by ``fabtests compare --json``.
    """
    charts: dict[tuple[str, str], Chart] = {}
    for row in document["rows"]:
        unit, size_key = UNITS[row["metric"]], "bytes" if "bytes" in row else "depth"
        chart = charts.setdefault(
            (row["case"], unit), Chart(row["case"], unit, size_key, not row["metric"].startswith("usec"))
        )
        way = f" by {row['way']}" if "way" in row else ""
        chart.add(f"ofipy {row['mode']}{way}", row[size_key], row["ofipy"]["value"], own=True)
        for name, peer in row["peers"].items():
            chart.add(name if name in way else f"{name}{way}", row[size_key], peer["value"], own=False)
    return list(charts.values())
