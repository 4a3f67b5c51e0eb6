# SPDX-License-Identifier: BSD-3-Clause
"""Many senders and one receiver: what a side of the case ``fan-in`` does, whoever moves its messages.

A message is the number of its sender, a word; all that is ever sent are whole windows. Senders send windows for a fixed
time, and then one more with :data:`LAST` in place of the number; the receiver counts the messages of each within a time
that lies inside theirs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy.pingpong.plan import WINDOW, Span

__all__ = ["SENDERS", "WINDOW", "WORD", "Counts", "Crowd", "Words"]

SENDERS = 63
WORD = np.uint64
LAST = SENDERS
SECONDS = (
    2.0  # that count: as many as give each of 63 processes on one core several turns of a few milliseconds
)
MARGIN = 0.75  # seconds before and after: until all have begun

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]


class Crowd(ABC):
    """One of many sides; the first receives, the others send.

    Parameters
    ----------
    first : bool
        Whether this one receives.
    """

    def __init__(self, first: bool) -> None:
        self.first = first

    def fan_in(self, number: int) -> tuple[Counts, float]:
        """Take part in one round.

        Parameters
        ----------
        number : int
            Of this sender, from 0 on.

        Returns
        -------
        tuple of ndarray of int64, shape (SENDERS,), and float
            Of the receiver: how many messages came from each, and in how many seconds.
        """
        if self.first:
            return self._count()
        until = Span(monotonic(), MARGIN, SECONDS).end
        words = np.full(WINDOW, number, WORD)
        while monotonic() < until:
            self.send(words)
        words.fill(LAST)
        self.send_last(words)
        return np.zeros(0, np.int64), 0.0

    def _count(self) -> tuple[Counts, float]:
        counts, ended = np.zeros(LAST + 1, np.int64), 0
        span = Span(monotonic(), MARGIN, SECONDS)
        for words in self.receive():
            came = np.bincount(words.view(np.int64), minlength=LAST + 1)
            ended += int(came[LAST])
            if span.counts(monotonic()):
                counts += came
            if ended == SENDERS * WINDOW:
                break
        return counts[:LAST], SECONDS

    @abstractmethod
    def send(self, words: Words) -> None:
        """Send each, as a message of its own; they are free again."""

    @abstractmethod
    def send_last(self, words: Words) -> None:
        """The same, and return when all that was sent has left."""

    @abstractmethod
    def receive(self) -> Iterator[Words]:
        """What has come, again and again, until all senders have ended."""

    @abstractmethod
    def version(self) -> str:
        """For the report."""

    @abstractmethod
    def offer(self) -> Any:
        """What senders need to find the receiver."""

    @abstractmethod
    def meet(self, other: Any) -> None:
        """Take the receiver's offer."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""
