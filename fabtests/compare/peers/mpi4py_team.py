# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py as a group: upper-case calls on numpy arrays."""

from typing import Any

import mpi4py

from fabtests.compare.team import Once, Team

__all__ = ["MpiTeam"]


_NAMES = {"broadcast": "Bcast", "reduce_scatter": "Reduce_scatter_block"}


class MpiTeam(Team):
    """One rank.

    Parameters
    ----------
    first : bool
        Whether it is rank 0.
    serial : bool
        Without support of threads, with which MPICH leaves its collectives in shared memory unused.
    """

    def __init__(self, first: bool, *, serial: bool = False) -> None:
        super().__init__(first)
        mpi4py.rc.threads = not serial
        # Starts MPI, so not before the line above.
        from mpi4py import MPI

        self._comm = MPI.COMM_WORLD
        self._finalize = MPI.Finalize
        self._version = MPI.Get_library_version()

    def version(self) -> str:
        """Of the library under it."""
        return " ".join(self._version.replace(":", " ").split()[:3]).rstrip("\0")

    def offer(self) -> None:
        """Ranks know each other."""

    def meet(self, offers: list[Any], rank: int) -> None:
        """Ranks have met at start."""
        self.size = len(offers)

    def prepare(self, mode: str, size: int) -> Once:
        """A blocking call."""
        call = getattr(self._comm, _NAMES.get(mode, mode.capitalize()))
        if mode == "barrier":
            return call  # type: ignore[no-any-return]
        buffers = list(self.buffers(mode, size))
        if mode == "broadcast":
            del buffers[1]
        return lambda: call(*buffers)

    def barrier(self) -> None:
        """Of all ranks."""
        self._comm.Barrier()

    def close(self) -> None:
        """Leave MPI, which waits for the other rank to do the same."""
        self._finalize()
