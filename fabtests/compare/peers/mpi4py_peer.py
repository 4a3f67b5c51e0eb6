# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py over MPICH: upper-case calls on numpy arrays. The workers are the ranks of ``mpiexec``."""

from typing import Any

from mpi4py import MPI

from fabtests.compare.contender import Contender, new_buffer

__all__ = ["Mpi"]

TAG = 7
TAG_ACKNOWLEDGE = 8


class Mpi(Contender):
    """``Send`` and ``Recv``; ``Isend`` and ``Irecv`` in a window."""

    distribution = "mpi4py"

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._world = MPI.COMM_WORLD
        self._other = 1 - self._world.Get_rank()
        self._byte = new_buffer(1)

    def version(self) -> str:
        """Of the binding and of the library under it."""
        library = " ".join(MPI.Get_library_version().replace(":", " ").split()[:3]).rstrip("\0")
        return f"{super().version()} ({library})"

    def offer(self) -> None:
        """Ranks know each other."""

    def meet(self, other: Any) -> None:
        """Ranks have met at start."""

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        send, receive, other = self._world.Send, self._world.Recv, self._other
        outgoing, incoming = self.outgoing, self.incoming
        if self.first:
            for _ in range(count):
                send(outgoing, other, TAG)
                receive(incoming, other, TAG)
        else:
            for _ in range(count):
                receive(incoming, other, TAG)
                send(outgoing, other, TAG)

    def stream(self, window: int) -> None:
        """One window."""
        world, other = self._world, self._other
        if self.first:
            isend, outgoing = world.Isend, self.outgoing
            MPI.Request.Waitall([isend(outgoing, other, TAG) for _ in range(window)])
            world.Recv(self._byte, other, TAG_ACKNOWLEDGE)
        else:
            ireceive, incoming = world.Irecv, self.incoming
            MPI.Request.Waitall([ireceive(incoming, other, TAG) for _ in range(window)])
            world.Send(self._byte, other, TAG_ACKNOWLEDGE)

    def close(self) -> None:
        """Leave MPI, which waits for the other rank to do the same."""
        MPI.Finalize()
