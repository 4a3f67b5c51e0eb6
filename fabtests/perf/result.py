# SPDX-License-Identifier: BSD-3-Clause
"""What a size took: of a batch, of a process, of all processes together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Result", "find_peak", "merge"]

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Operations, both ways where both are measured, and the time that they took."""

    size: int
    """Bytes of each."""
    operations: int
    """How many."""
    rate: float
    """Operations a second."""
    peak: float = 0.0
    """The same, at best; 0: nobody looked."""
    samples: npt.NDArray[np.float64] | None = None
    """Microseconds of single ones."""

    def statistics(self) -> dict[str, float]:
        """Of the samples, with the names of perftest's report; percentiles are of all samples."""
        assert self.samples is not None
        samples = self.samples
        return {
            "t_min": float(samples.min()),
            "t_max": float(samples.max()),
            "t_typical": float(np.median(samples)),
            "t_avg": float(samples.mean()),
            "t_stdev": float(samples.std()),
            "percentile_99": self._at(990),
            "percentile_99.9": self._at(999),
        }

    def _at(self, permille: int) -> float:
        """The least sample that so many of a thousand do not exceed."""
        assert self.samples is not None
        rank = -(-len(self.samples) * permille // 1000)
        return float(np.partition(self.samples, rank - 1)[rank - 1])


def merge(results: Sequence[Result]) -> Result:
    """Of processes that ran at the same time."""
    samples: list[Any] = [each.samples for each in results if each.samples is not None]
    return Result(
        size=results[0].size,
        operations=sum(each.operations for each in results),
        rate=sum(each.rate for each in results),
        peak=sum(each.peak for each in results),
        samples=np.concatenate(samples) if samples else None,
    )


def find_peak(posted: Times, completed: Times, group: int) -> float:
    """Operations a second of the best stretch: from a post to a completion at or behind it.

    Parameters
    ----------
    posted, completed : ndarray of int64
        Nanoseconds at which the groups were begun and completed, both in order.
    group : int
        Operations of one.
    """
    counts = np.arange(1, len(posted) + 1, dtype=np.float64)
    best = max(
        float((counts[: len(posted) - index] / np.maximum(completed[index:] - begin, 1)).max())
        for index, begin in enumerate(posted)
    )
    return best * group * 1e9
