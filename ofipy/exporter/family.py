# SPDX-License-Identifier: BSD-3-Clause
"""A metric by its name, and the rows of it that one scrape gets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Distribution", "Family", "Rows"]


@dataclass(frozen=True, slots=True)
class Family:
    """All series of one name."""

    name: str
    """As in a query: a counter's ends with ``_total``."""
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """The value of a histogram's row."""

    buckets: tuple[tuple[float, int], ...]
    """Upper bound and how many are at most so large; the last bound is infinite."""
    sum: int


@dataclass(slots=True)
class Rows:
    """What one scrape gets: for each family its label values with a value."""

    of: dict[Family, list[tuple[tuple[str, ...], float | Distribution]]] = field(default_factory=dict)

    def add(self, family: Family, labels: Sequence[str], value: float | Distribution) -> None:
        """Add one row. The labels are in the order of the family's."""
        self.of.setdefault(family, []).append((tuple(labels), value))

    def offer(self, family: Family, labels: Sequence[str], value: float | None) -> None:
        """Add one row if there is a value: what is absent is not told as 0."""
        if value is not None:
            self.add(family, labels, value)

    def series(self, family: Family) -> int:
        """How many series a family has."""
        return sum(series_of(value) for _, value in self.of.get(family, ()))


def series_of(value: float | Distribution) -> int:
    """How many series a row has: a histogram's has its buckets, their sum and their count."""
    return len(value.buckets) + 2 if isinstance(value, Distribution) else 1
