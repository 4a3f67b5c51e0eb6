# SPDX-License-Identifier: BSD-3-Clause
"""A contender is one way of moving bytes: a class with an object in each of the two workers."""

import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy.pingpong.plan import WINDOW

__all__ = [
    "DISTINCT",
    "Bytes",
    "Contender",
    "TimedInC",
    "Times",
    "count_distinct",
    "new_buffer",
    "read_all",
    "time_each",
]

DISTINCT_BYTES = 64 << 20
"""What the buffers of a window take at most on each side: more than most caches hold, and no more than a laptop has."""

DISTINCT = "distinct"
"""Mode of peers whose windows are of as many buffers."""

Times = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def new_buffer(size: int) -> Bytes:
    """A buffer with memory of its own: untouched pages would all be the one page of zeros."""
    return np.ones(size, dtype=np.uint8)


def count_distinct(size: int) -> int:
    """Messages of a window, each of a buffer of its own, for messages of `size` bytes."""
    return max(1, min(WINDOW, DISTINCT_BYTES // size))


def read_all(buffer: Bytes) -> None:
    """Look at every byte, as a program does that uses what came."""
    buffer.max()  # the fastest of numpy's ways: 100 GB/s out of the cache


def time_each(exchange: Callable[[int], None], count: int) -> Times:
    """Nanoseconds of each of `count` calls of ``exchange(1)``."""
    stamps = np.zeros(count + 1, dtype=np.int64)
    stamps[0] = perf_counter_ns()
    for index in range(1, count + 1):
        exchange(1)
        stamps[index] = perf_counter_ns()
    return stamps[1:] - stamps[:-1]


class TimedInC(ABC):
    """A ping-pong in C, which times single round trips itself; beside a :class:`Contender`, or what plays for one."""

    @abstractmethod
    def measure(self, count: int, times: Times | None) -> None:
        """Play `count` times; the nanoseconds of each go into `times`."""

    def exchange(self, count: int) -> None:
        """One call."""
        self.measure(count, None)

    def sample(self, count: int) -> Times:
        """One call as well."""
        times = np.zeros(count, dtype=np.int64)
        self.measure(count, times)
        return times


class Contender(ABC):
    """One side of a way to move bytes between two processes.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    """

    distribution: str
    """Name of the package whose version is reported."""

    outgoing: Bytes
    """What this side sends; there after :meth:`prepare`."""
    incoming: Bytes
    """Where it receives."""
    reads = False
    """Whether the first side rewrites a window, and the second reads every byte of it before it acknowledges."""

    def __init__(self, first: bool) -> None:
        self.first = first

    def version(self) -> str:
        """Version for the report."""
        return importlib.metadata.version(self.distribution)

    @abstractmethod
    def offer(self) -> Any:
        """What the other side needs to find this one."""

    @abstractmethod
    def meet(self, other: Any) -> None:
        """Take the other side's offer and connect."""

    def prepare(self, size: int, mode: str) -> None:
        """Make both buffers for messages of `size` bytes; what follows uses them."""
        self.outgoing, self.incoming = new_buffer(size), new_buffer(size)

    def exchange(self, count: int) -> None:
        """Ping-pong `count` times: the first side sends, then receives; the second the other way round."""
        raise NotImplementedError(f"{type(self).__name__} has no ping-pong")

    def stream(self, window: int) -> None:
        """Move `window` messages from the first side to the second, then an acknowledgement back."""
        raise NotImplementedError(f"{type(self).__name__} has no stream")

    def windows(self, window: int, count: int) -> Times:
        """Nanoseconds of each of `count` windows, in which the second side reads what the first one has rewritten."""
        times = np.zeros(count, dtype=np.int64)
        for index in range(count):
            if self.reads and self.first:
                self.rewrite(index & 0xFF)
            begin = perf_counter_ns()
            self.stream(window)
            times[index] = perf_counter_ns() - begin
            self.settle()
        return times

    def settle(self) -> None:  # noqa: B027  most have nothing to do here
        """What belongs between two windows of the mode and is not timed."""

    def look(self) -> None:
        """Second side, between a window's messages and its acknowledgement."""
        if self.reads:
            read_all(self.incoming)

    def rewrite(self, value: int) -> None:
        """Fill the send buffer with `value`; the acknowledgement has shown that nothing reads it any more."""
        self.outgoing.fill(value)

    def last_value(self) -> int:
        """First byte of what came last."""
        return int(self.incoming[0])

    def sample(self, count: int) -> Times:
        """Nanoseconds of each of `count` round trips."""
        return time_each(self.exchange, count)

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""
