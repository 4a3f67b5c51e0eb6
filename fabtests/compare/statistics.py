# SPDX-License-Identifier: BSD-3-Clause
"""From rounds to a value, its spread and its tail.

The value is the median over rounds. The spread is the interquartile range of the rounds divided by their
median: it says how far the middle half of the rounds disagree and is deaf to a single round that a neighbour
on the machine disturbed, which (maximum - minimum) / median is not. Where either side of a comparison spreads
by more than :data:`SPREAD_LIMIT`, no ratio is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EVEN", "SPREAD_LIMIT", "Summary", "judge", "ratio", "round_digits", "summarize"]

SPREAD_LIMIT = 0.25
EVEN = 0.05
"""What two contenders may differ by and still be called even."""
SAMPLES_PER_TAIL = 10  # fewer samples than this beyond a percentile say nothing about it


@dataclass(frozen=True, slots=True)
class Summary:
    """What a row says about one contender."""

    value: float
    """Median over rounds, in the unit of the row's metric."""
    spread: float
    """Interquartile range over rounds, as a fraction of the value."""
    p99: float | None
    """The value that 99 % of single measurements are no worse than; None when too few were taken."""
    p999: float | None
    """The same for 99.9 %."""

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        return {
            "value": round_digits(self.value),
            "p99": round_digits(self.p99),
            "p999": round_digits(self.p999),
            "spread": round(self.spread, 4),
        }


def round_digits(value: float | None) -> float | None:
    """Six significant digits: more would be noise."""
    return None if value is None else float(f"{value:.6g}")


def summarize(
    rounds: Sequence[float], samples: npt.NDArray[np.float64], *, higher_is_better: bool
) -> Summary:
    """Sum up the rounds of one contender.

    Parameters
    ----------
    rounds : sequence of float
        One figure a round, at least one.
    samples : numpy.ndarray
        Single measurements of all rounds in the same unit, for percentiles; may be empty.
    higher_is_better : bool
        Turns the tail around: for a bandwidth the slow end is the low one.
    """
    low, middle, high = (float(value) for value in np.percentile(rounds, (25, 50, 75)))
    return Summary(
        value=middle,
        spread=(high - low) / middle,
        p99=tail(samples, 99.0, higher_is_better),
        p999=tail(samples, 99.9, higher_is_better),
    )


def tail(samples: npt.NDArray[np.float64], percent: float, higher_is_better: bool) -> float | None:
    """The percentile at the slow end, None without enough samples."""
    if samples.size * (100 - percent) / 100 < SAMPLES_PER_TAIL * (1 - 1e-9):
        return None
    return float(np.percentile(samples, 100 - percent if higher_is_better else percent))


def ratio(ofipy: Summary, peer: Summary) -> tuple[float | None, str | None]:
    """The value of ofipy divided by that of the peer."""
    for name, side in (("ofipy", ofipy), ("peer", peer)):
        if side.spread > SPREAD_LIMIT:
            return None, f"spread of {name} is {side.spread:.0%}, more than {SPREAD_LIMIT:.0%}"
    return ofipy.value / peer.value, None


def judge(quotient: float, *, higher_is_better: bool) -> str:
    """How ofipy stands to a peer: ``ahead``, ``even`` or ``behind``.

    Parameters
    ----------
    quotient : float
        The value of ofipy divided by that of the peer.
    higher_is_better : bool
        The value is a rate rather than a time.
    """
    times_as_good = quotient if higher_is_better else 1 / quotient
    if times_as_good < 1 - EVEN:
        return "behind"
    return "ahead" if times_as_good > 1 + EVEN else "even"
