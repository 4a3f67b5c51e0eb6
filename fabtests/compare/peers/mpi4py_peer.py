# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py over MPICH: upper-case calls on numpy arrays. The workers are the ranks of ``mpiexec``."""

import os
import socket
import stat
import struct
from functools import partial
from typing import Any, Literal

from mpi4py import MPI

from fabtests.compare.contender import Bytes
from fabtests.compare.peers.channel import Channel, Step

__all__ = ["Mpi"]

TAG = 7


PROOF_BYTES = 1 << 16
TCP_INFO_BYTES = 256
BYTES_RECEIVED = 128  # where in struct tcp_info


def received_by_tcp() -> int:
    """Bytes that all TCP connections of this process have received."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
        except OSError:  # the one that listed the folder
            continue
        with socket.socket(fileno=os.dup(descriptor)) as shared:
            if shared.family in (socket.AF_INET, socket.AF_INET6) and shared.type == socket.SOCK_STREAM:
                info = shared.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
                total += struct.unpack_from("Q", info, BYTES_RECEIVED)[0]
    return total


class Mpi(Channel):
    """``Send`` and ``Recv``; ``Isend`` and ``Irecv`` in a window.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    over : str
        ``tcp``: make sure that MPI uses it; ``shm``: as it comes.
    """

    distribution = "mpi4py"

    def __init__(self, first: bool, *, over: Literal["shm", "tcp"]) -> None:
        super().__init__(first)
        self._over = over
        self._world = MPI.COMM_WORLD
        self._other = 1 - self._world.Get_rank()

    def version(self) -> str:
        """Of the binding and of the library under it."""
        library = " ".join(MPI.Get_library_version().replace(":", " ").split()[:3]).rstrip("\0")
        return f"{super().version()} ({library})"

    def offer(self) -> None:
        """Ranks know each other."""

    def meet(self, other: Any) -> None:
        """Ranks have met at start; what they talk over shows when they talk.

        Raises
        ------
        RuntimeError
            When it is not what was asked for: a library may ignore the variables of another.
        """
        if self._over == "tcp":
            self.prepare(PROOF_BYTES, "plain")
            self.exchange(1)
            if (received := received_by_tcp()) < PROOF_BYTES:
                raise RuntimeError(f"MPI moved {PROOF_BYTES} bytes, but {received} by TCP")

    def sender(self, buffer: Bytes) -> Step:
        """``Send``."""
        return partial(self._world.Send, buffer, self._other, TAG)

    def receiver(self, buffer: Bytes) -> Step:
        """``Recv``."""
        return partial(self._world.Recv, buffer, self._other, TAG)

    def stream(self, window: int) -> None:
        """One window, all at once."""
        if self.first:
            start = partial(self._world.Isend, self.outgoing, self._other, TAG)
            MPI.Request.Waitall([start() for _ in range(window)])
            self.await_acknowledgement()
        else:
            start = partial(self._world.Irecv, self.incoming, self._other, TAG)
            MPI.Request.Waitall([start() for _ in range(window)])
            self.acknowledge()

    def close(self) -> None:
        """Leave MPI, which waits for the other rank to do the same."""
        MPI.Finalize()
