# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py.futures: rank 0 has the executor, and rank 1 serves it for the length of a round."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

from fabtests.compare.peers.mpi4py_peer import mpi_version
from fabtests.compare.tasks import Executing, Run, Tasks

__all__ = ["MpiTasks"]


class _Executor(Executing):
    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def map(self, function: Run, count: int) -> int:
        return sum(self._executor.map(function, range(count)))

    def call(self, function: Run, argument: Any) -> Any:
        return self._executor.submit(function, argument).result()


class MpiTasks(Tasks):
    """One rank."""

    def version(self) -> str:
        """Of the binding and of the library under it."""
        return mpi_version()

    def offer(self) -> None:
        """Ranks know each other."""

    def meet(self, other: Any) -> None:
        """Ranks have met at start."""

    @contextmanager
    def executing(self) -> Iterator[Executing | None]:
        """The worker serves in here until the executor ends."""
        with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
            yield None if executor is None else _Executor(executor)

    def close(self) -> None:
        """Leave MPI, which waits for the other rank to do the same."""
        MPI.Finalize()
