# SPDX-License-Identifier: BSD-3-Clause
"""Runs in each worker: holds one contender and times it."""

import threading
from time import perf_counter_ns
from typing import Any

import numpy as np

from fabtests.compare.contender import Contender, Times
from ofipy.pingpong.worker import load

__all__ = ["Bench"]

WARMUP = 5
WARMUP_MESSAGES = 64
"""Before windows are timed: by then a mode has left behind what the one before it had, such as how ofipy copied."""
GO_ON, STOP = 1, 2  # what the first side sends in a run that ends by time


class BusyThread:
    """A Python thread that computes, as a program does that has other work."""

    def __init__(self) -> None:
        self._stop = False
        self._thread = threading.Thread(target=self._compute, name="busy")
        self._thread.start()

    def _compute(self) -> None:
        number = 0
        while not self._stop:
            number = (number * 31 + 7) & 0xFFFF

    def close(self) -> None:
        """Let it end."""
        self._stop = True
        self._thread.join()


class Bench:
    """One side of a contender, with the clock.

    Parameters
    ----------
    first : bool
        Whether this is the side that times.
    contender : str
        ``module:class``.
    **options
        Keyword arguments of that class.
    """

    def __init__(self, first: bool, *, contender: str, **options: Any) -> None:
        self._first = first
        self._contender: Contender = load(contender)(first, **options)

    def offer(self) -> Any:
        """See :meth:`Contender.offer`."""
        return self._contender.offer()

    def meet(self, other: Any) -> None:
        """See :meth:`Contender.meet`."""
        self._contender.meet(other)

    def version(self) -> str:
        """See :meth:`Contender.version`."""
        return self._contender.version()

    def latency(self, mode: str, size: int, count: int, chunks: int, samples: int) -> tuple[Times, Times]:
        """Time `chunks` chunks of `count` round trips, then `samples` single ones.

        Returns
        -------
        tuple of numpy.ndarray
            Nanoseconds of each chunk and of each single round trip; meaningful on the first side.
        """
        contender = self._contender
        contender.prepare(size, mode)
        contender.exchange(WARMUP)
        times = np.zeros(chunks, dtype=np.int64)
        for index in range(chunks):
            begin = perf_counter_ns()
            contender.exchange(count)
            times[index] = perf_counter_ns() - begin
        return times, contender.sample(samples)

    def singles(self, mode: str, size: int, count: int) -> Times:
        """Time `count` single round trips.

        Returns
        -------
        numpy.ndarray
            Nanoseconds of each; meaningful on the first side.
        """
        contender = self._contender
        contender.prepare(size, mode)
        contender.exchange(WARMUP)
        return contender.sample(count)

    def busy_latency(self, mode: str, size: int, batch: int, nanoseconds: float) -> tuple[int, int]:
        """Count round trips in a given time while a Python thread computes beside the first side.

        One round trip may take a thousand times as long as the next one, so the time is fixed, not their
        number. The first side ends the run: it tells by the value that it sends in the last batch.

        Returns
        -------
        tuple of int
            Nanoseconds and round trips; meaningful on the first side.
        """
        contender = self._contender
        contender.prepare(size, mode)
        contender.rewrite(GO_ON)
        contender.exchange(WARMUP)
        if not self._first:
            while contender.last_value() == GO_ON:
                contender.exchange(batch)
            return 0, 0
        beside = BusyThread()
        try:
            count, begin = 0, perf_counter_ns()
            while (taken := perf_counter_ns() - begin) < nanoseconds:
                contender.exchange(batch)
                count += batch
        finally:
            beside.close()
        contender.rewrite(STOP)
        contender.exchange(batch)
        return taken, count

    def bandwidth(self, mode: str, size: int, window: int, count: int, rewrite: bool) -> Times:
        """Time `count` windows.

        Returns
        -------
        numpy.ndarray
            Nanoseconds of each window; meaningful on the first side.
        """
        contender = self._contender
        contender.prepare(size, mode)
        contender.reads = rewrite
        contender.windows(window, max(1, WARMUP_MESSAGES // window))
        return contender.windows(window, count)

    def close(self) -> None:
        """Close the contender."""
        self._contender.close()
