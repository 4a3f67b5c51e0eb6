# SPDX-License-Identifier: BSD-3-Clause
"""What became of the messages of one lane."""

from dataclasses import dataclass, field

import numpy as np

__all__ = ["Summary", "Tally"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts, and times of a round trip in microseconds; None where nothing came back."""

    sent: int
    answered: int
    lost: int
    """Without an answer in time."""
    late: int
    """Of those lost, answered later."""
    wrong: int
    """Answered with other contents than were sent."""
    min_usec: float | None
    average_usec: float | None
    p99_usec: float | None
    max_usec: float | None

    @property
    def loss_percent(self) -> float:
        """Share of the messages that were lost or answered wrongly."""
        return 100 * (self.sent - self.answered) / self.sent if self.sent else 0.0


@dataclass(slots=True)
class Tally:
    """Counts while messages go back and forth."""

    lost: int = 0
    wrong: int = 0
    late: int = 0
    seconds: list[float] = field(default_factory=list)
    """Of each round trip that was answered rightly."""

    def add(self, outcome: str, taken: float) -> None:
        """Count a round trip: ``answered``, ``lost`` or ``wrong``."""
        if outcome == "answered":
            self.seconds.append(taken)
        elif outcome == "wrong":
            self.wrong += 1
        else:
            self.lost += 1

    def summarize(self) -> Summary:
        """The figures."""
        times = np.array(self.seconds) * 1e6
        some = times.size > 0
        return Summary(
            sent=len(self.seconds) + self.lost + self.wrong,
            answered=len(self.seconds),
            lost=self.lost,
            late=self.late,
            wrong=self.wrong,
            min_usec=float(times.min()) if some else None,
            average_usec=float(times.mean()) if some else None,
            p99_usec=float(np.percentile(times, 99)) if some else None,
            max_usec=float(times.max()) if some else None,
        )
