# SPDX-License-Identifier: BSD-3-Clause
"""One executor and one worker, each with a core: what a side of the case ``executor`` does, whoever moves its tasks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from fabtests.compare.contender import Bytes, new_buffer

__all__ = ["TASKS", "Executing", "Tasks"]

TASKS = "tasks"
"""Mode of tasks that do nothing; all are submitted before their results are asked for. The others have one argument."""

Run = Callable[..., Any]


def nothing(number: int) -> int:
    """A task that does as good as nothing."""
    return number


def count_bytes(array: Bytes) -> int:
    """A task with a large argument, which it has whole."""
    return int(array[0]) * array.nbytes


class Executing(ABC):
    """An executor whose worker is ready."""

    @abstractmethod
    def map(self, function: Run, count: int) -> int:
        """Submit calls with the numbers below `count`; the sum of their results."""

    @abstractmethod
    def call(self, function: Run, argument: Any) -> Any:
        """Submit one call and wait for its result."""


class Tasks(ABC):
    """One of two sides; the first submits, the other one is the worker or starts it.

    Parameters
    ----------
    first : bool
        Whether this side submits.
    """

    def __init__(self, first: bool) -> None:
        self.first = first

    def measure(self, mode: str, size: int, count: int) -> int:
        """Nanoseconds of `count` tasks; meaningful on the first side.

        Parameters
        ----------
        mode : str
            :data:`TASKS`, or any other: one task after the other, each with an argument.
        size : int
            Bytes of that.
        count : int
            How many tasks.
        """
        with self.executing() as executor:
            if executor is None:
                return 0
            array = new_buffer(size)
            executor.call(count_bytes, array)  # by then the worker has imported all it needs
            begin = perf_counter_ns()
            if mode == TASKS:
                result, expected = executor.map(nothing, count), count * (count - 1) // 2
            else:
                result = sum(executor.call(count_bytes, array) for _ in range(count))
                expected = count * size
            taken = perf_counter_ns() - begin
            if result != expected:
                raise AssertionError(f"{count} tasks of {size} bytes have returned {result}, not {expected}")
            return taken

    @contextmanager
    def executing(self) -> Iterator[Executing | None]:
        """Have the executor on the first side, and None on the other one, which serves it meanwhile if it has to."""
        yield self.executor() if self.first else None

    def executor(self) -> Executing:
        """The executor, on the first side."""
        raise NotImplementedError(f"{type(self).__name__} makes its executor for each round")

    @abstractmethod
    def version(self) -> str:
        """For the report."""

    @abstractmethod
    def offer(self) -> Any:
        """What the worker needs to find the executor."""

    @abstractmethod
    def meet(self, other: Any) -> None:
        """Take the executor's offer."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""
