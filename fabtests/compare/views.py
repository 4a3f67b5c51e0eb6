# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose elements lie apart: what the case of strided memory sends and receives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["COPIED", "VIEWS", "View"]

COPIED = "copied-"
"""Prefix of the modes in which numpy packs and unpacks the array."""


@dataclass(frozen=True, slots=True)
class View:
    """A part of the columns of a C-contiguous array of float64."""

    columns: int
    """Of the whole array."""
    begin: int
    """The first column."""
    length: int
    """Columns from there on."""

    def make(self, size: int) -> npt.NDArray[Any]:
        """Such a part with `size` bytes, written once, so that its pages are there."""
        whole = np.ones((max(size // (8 * self.length), 1), self.columns))
        return whole[:, self.begin : self.begin + self.length]


VIEWS = {
    "column": View(columns=8, begin=3, length=1),
    "block": View(columns=128, begin=32, length=64),
}
"""By mode: runs of 8 bytes, one in each cache line, and runs of 512 bytes."""
