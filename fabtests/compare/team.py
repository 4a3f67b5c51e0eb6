# SPDX-License-Identifier: BSD-3-Clause
"""A member of a group: what a side of the case ``collectives`` does, whoever carries the collectives out.

Sizes are bytes that one member contributes; of an alltoall to each. Elements are float32. All sides make the same
calls; a barrier before the clock starts keeps one side's round from beginning in another's last one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "ARRAY",
    "DOMAIN",
    "KERNEL",
    "KINDS",
    "NATIVE",
    "PREPARED",
    "TAGGED",
    "Array",
    "Once",
    "Team",
    "kind_of",
]

KINDS = (
    *("barrier", "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"),
    *("reduce_scatter", "scan", "exscan"),
)
NATIVE, PREPARED, DOMAIN = "native-", "prepared-", "domain-"
"""What may stand before a kind: prepared requests in a loop of C, or of Python; memory of the domain."""
KERNEL = "kernel-sum"
"""Mode of the reduction alone: two arrays of one process, without a group."""
TAGGED, ARRAY = "tagged", "array"
"""Modes between two members: an exchange of tagged messages in C; an array sent."""

Array = npt.NDArray[np.float32]
Once = Callable[[], Any]


def kind_of(mode: str) -> str:
    """The kind of a mode, without what stands before it."""
    for prefix in (NATIVE, PREPARED, DOMAIN):
        mode = mode.removeprefix(prefix)
    return mode


class Team(ABC):
    """One of the sides.

    Parameters
    ----------
    first : bool
        Whether this side is rank 0, the root.
    """

    size = 2
    """Members."""

    def __init__(self, first: bool) -> None:
        self.first = first

    def measure(self, mode: str, size: int, count: int) -> int:
        """Nanoseconds of `count` calls; meaningful on the first side.

        Parameters
        ----------
        mode : str
            A kind, with what stands before it, or :data:`KERNEL`.
        size : int
            Bytes.
        count : int
            Calls.
        """
        if mode == KERNEL:
            return self._time(self.kernel(*(self.array(size, KERNEL) for _ in range(3))), count)
        once = self.prepare(mode, size)
        once()
        self.barrier()
        return self._time(once, count)

    def _time(self, once: Once, count: int) -> int:
        begin = perf_counter_ns()
        for _ in range(count):
            once()
        return perf_counter_ns() - begin

    def buffers(self, kind: str, size: int, mode: str = "") -> tuple[Array | None, Array | None]:
        """What this side gives and gets; None where it is nothing, or where the call takes one buffer."""
        every = self.size * size
        gives = {"alltoall": every, "reduce_scatter": every, "scatter": every if self.first else 0}.get(
            kind, size
        )
        gets = {
            "allgather": every,
            "alltoall": every,
            "gather": every if self.first else 0,
            "reduce_scatter": size,
            "reduce": size if self.first else 0,
            "broadcast": 0,
        }.get(kind, size)
        return self.array(gives, mode) if gives else None, self.array(gets, mode) if gets else None

    def array(self, size: int, mode: str) -> Array:
        """Memory of so many bytes, all of whose pages exist."""
        return np.ones(size // 4, np.float32)

    @abstractmethod
    def prepare(self, mode: str, size: int) -> Once:
        """One call of this mode, with buffers of its own."""

    def kernel(self, out: Array, left: Array, right: Array) -> Once:
        """One reduction of two arrays; by default numpy's."""
        return lambda: np.add(left, right, out=out)

    @abstractmethod
    def barrier(self) -> None:
        """Wait for the other side."""

    @abstractmethod
    def version(self) -> str:
        """For the report."""

    @abstractmethod
    def offer(self) -> Any:
        """What the other side needs to find this one."""

    @abstractmethod
    def meet(self, offers: list[Any], rank: int) -> None:
        """Take the offers of all sides; this one is number `rank`."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""
