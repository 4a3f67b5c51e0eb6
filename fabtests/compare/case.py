# SPDX-License-Identifier: BSD-3-Clause
"""What every case has: its rows, whom each row is compared with, how one round of one contender is taken."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabtests.compare.entrants import OFIPY, Entrant
from fabtests.compare.field import Field

__all__ = ["NO_SAMPLES", "Case", "Cell", "Round"]

NO_SAMPLES: npt.NDArray[np.float64] = np.zeros(0)


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
        return self.metric_of(mode) != "usec_per_transfer"

    def groups(self) -> list[list[tuple[str, int]]]:
        """Rows (mode, size) by group, one a size; the rounds of a group's contenders alternate."""
        return [[(mode, size) for mode in self.modes] for size in self.sizes]

    def own_cell(self, mode: str, size: int) -> Cell:
        """What to measure of ofipy for a row."""
        return Cell(self.own, mode, size)

    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """What to measure of each peer for a row; most have one way only."""
        return {peer.name: Cell(peer, "plain", size) for peer in self.peers}

    @abstractmethod
    def calibrate(self, field: Field, cell: Cell) -> int:
        """Repetitions that one timed part of this cell needs; to find out warms the cell up."""

    @abstractmethod
    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """Take one round."""
