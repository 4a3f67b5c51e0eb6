# SPDX-License-Identifier: BSD-3-Clause
"""Fetch-adds of mpi4py: ``Fetch_and_op`` and ``Flush`` on a window that stays locked."""

import numpy as np
from mpi4py import MPI

__all__ = ["Adder"]


class Adder:
    """A window of one number a rank; all ranks make it together.

    Parameters
    ----------
    other : int
        The rank whose number is added to.
    """

    def __init__(self, other: int) -> None:
        self._other = other
        self._one, self._old = np.ones(1, np.uint64), np.zeros(1, np.uint64)
        self._window = MPI.Win.Allocate(self._one.nbytes, self._one.nbytes, comm=MPI.COMM_WORLD)
        self._window.Lock_all()

    def add(self, count: int) -> None:
        """So many times."""
        fetch, flush = self._window.Fetch_and_op, self._window.Flush
        one, old, other, total = self._one, self._old, self._other, MPI.SUM
        for _ in range(count):
            fetch(one, old, other, 0, total)
            flush(other)

    def close(self) -> None:
        """All ranks together."""
        self._window.Unlock_all()
        self._window.Free()
