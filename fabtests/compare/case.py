# SPDX-License-Identifier: BSD-3-Clause
"""What every case has: its rows, whom each row is compared with, how one round of one contender is taken."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fabtests.compare.entrants import OFIPY, Entrant
from fabtests.compare.field import Field
from fabtests.compare.statistics import Summary

__all__ = ["NO_SAMPLES", "Case", "Cell", "Line", "Round"]

NO_SAMPLES: npt.NDArray[np.float64] = np.zeros(0)


class Line(NamedTuple):
    """What a row of the result is about."""

    mode: str
    size: int
    way: str = ""
    """The provider that the messages go by, where the case's own has several."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One contender in one mode at one size: what a round measures."""

    entrant: Entrant
    mode: str
    size: int


@dataclass(frozen=True, slots=True)
class Round:
    """What a round found, in the unit of the case's metric."""

    value: float
    samples: npt.NDArray[np.float64]
    """Single measurements, for the tail."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else it found, by the row's key."""


class Case(ABC):
    """A question that a table answers.

    Parameters
    ----------
    provider : str, optional
        What ofipy runs over. Default: what the case is named after.
    """

    name: str
    metric: str
    provider: str
    modes: tuple[str, ...]
    sizes: tuple[int, ...]
    peers: tuple[Entrant, ...]
    size_key = "bytes"
    """Name of the size in the document."""
    needs_provider = True
    caps: tuple[str, ...] = ()
    """Capabilities that the provider must have."""

    def __init__(self, provider: str | None = None) -> None:
        if provider is not None:
            self.provider = provider

    @property
    def own(self) -> Entrant:
        """Ofipy over the case's provider."""
        return Entrant(OFIPY, self.provider)

    def metric_of(self, mode: str) -> str:
        """The metric of a row of this mode."""
        return self.metric

    def higher_is_better(self, mode: str) -> bool:
        """Whether that is a rate rather than a time."""
        return not self.metric_of(mode).startswith("usec")

    def groups(self) -> list[list[Line]]:
        """Rows by group, one a size; the rounds of a group's contenders alternate."""
        return [[Line(mode, size) for mode in self.modes] for size in self.sizes]

    def own_cell(self, line: Line) -> Cell:
        """What to measure of ofipy for a row."""
        return Cell(self.own, line.mode, line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """What to measure of each peer for a row; most have one way only."""
        return {peer.name: Cell(peer, "plain", line.size) for peer in self.peers}

    def provider_of(self, line: Line) -> str:
        """What ofipy runs over in a row."""
        return self.provider

    def sum_up_own(self, rounds: list[Round], summary: Summary) -> Summary:
        """What to say of ofipy's rounds; by default what is said of all."""
        return summary

    def sum_up_facts(self, rounds: list[Round]) -> Mapping[str, Any]:
        """Further keys of a contender's part of the row; of ofipy they are the row's own."""
        return {}

    @abstractmethod
    def calibrate(self, field: Field, cell: Cell) -> int:
        """Repetitions that one timed part of this cell needs; to find out warms the cell up."""

    @abstractmethod
    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """Take one round."""
