# SPDX-License-Identifier: BSD-3-Clause
"""What a process of a scale program has found: how much went to each of its targets, and how long each turn took."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Flows", "Turns"]

PARTS = 128  # of a factor e: what a percentile is exact to is 1 / PARTS
BUCKETS = PARTS * 28  # up to e**28 ns, 24 minutes


@dataclass(slots=True)
class Turns:
    """Times of many turns, in buckets that grow with the time, so that those of all processes add up."""

    buckets: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))

    def add(self, seconds: float) -> None:
        """One turn."""
        self.buckets[min(int(np.log(max(seconds * 1e9, 1)) * PARTS), BUCKETS - 1)] += 1

    def percentile(self, percent: float) -> float | None:
        """Microseconds that so many per cent of the turns took at most; None: there were too few to tell."""
        beyond = self.buckets.sum() * (100 - percent) / 100
        if beyond < 1 - 1e-9:
            return None
        rank = self.buckets.sum() - beyond
        bucket = int(np.searchsorted(np.cumsum(self.buckets), rank))
        return float(np.exp((bucket + 0.5) / PARTS) / 1e3)


@dataclass(slots=True)
class Flows:
    """Of one process."""

    counts: npt.NDArray[np.int64]
    """Messages, or connections, that counted: one number for each target."""
    turns: Turns = field(default_factory=Turns)
    """Those that counted."""

    def encode(self) -> bytes:
        """For the other processes."""
        return self.counts.tobytes() + self.turns.buckets.tobytes()

    @classmethod
    def add_up(cls, encoded: list[bytes]) -> "Flows":
        """The flows of all processes, and all of their turns."""
        numbers = [np.frombuffer(each, np.int64) for each in encoded]
        buckets = np.sum([each[-BUCKETS:] for each in numbers], axis=0)
        return cls(np.concatenate([each[:-BUCKETS] for each in numbers]), Turns(buckets))
