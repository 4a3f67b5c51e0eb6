# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py over MPICH: upper-case calls on numpy arrays. The workers are the ranks of ``mpiexec``."""

import os
import socket
import stat
import struct
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from fabtests.compare.contender import DISTINCT, Bytes, new_buffer
from fabtests.compare.peers.channel import Channel, Step
from fabtests.compare.peers.mpi4py_adder import Adder
from fabtests.compare.ucx import FETCH_ADD
from fabtests.compare.views import VIEWS

__all__ = ["Mpi", "mpi_version"]

TAG = 7


PROOF_BYTES = 1 << 16
TCP_INFO_BYTES = 256
BYTES_RECEIVED = 128  # where in struct tcp_info


def mpi_version() -> str:
    """Of the binding and of the library under it."""
    library = " ".join(MPI.Get_library_version().replace(":", " ").split()[:3]).rstrip("\0")
    return f"{version('mpi4py')} ({library})"


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


def derived(view: npt.NDArray[np.float64]) -> list[Any]:
    """A part of the columns of an array, as MPI takes it: memory, count and a derived type."""
    rows, columns = view.shape
    kind = MPI.DOUBLE.Create_vector(rows, columns, view.strides[0] // view.itemsize).Commit()
    # MPI takes contiguous memory as it is: the row of the array from the first column on.
    whole = np.lib.stride_tricks.as_strided(
        view[0, 0:1], (1 + (rows - 1) * view.strides[0] // 8 + columns - 1,)
    )
    return [whole, 1, kind]


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
        self._adder: Adder | None = None

    def version(self) -> str:
        """Of the binding and of the library under it."""
        return mpi_version()

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

    def prepare(self, size: int, mode: str) -> None:
        """Make the window, too, where fetch-adds are meant."""
        super().prepare(size, mode)
        self._mode = mode
        self._many: list[Bytes] | None = None
        self._sent: Any = self.outgoing
        self._received: Any = self.incoming
        if view := VIEWS.get(mode):
            self._sent, self._received = derived(view.make(size)), derived(view.make(size))
        if mode == FETCH_ADD and self._adder is None:
            self._adder = Adder(self._other)

    def exchange(self, count: int) -> None:
        """Ping-pong, or fetch-adds of the first side."""
        if self._mode != FETCH_ADD:
            super().exchange(count)
        elif self.first and self._adder is not None:
            self._adder.add(count)

    def sender(self, buffer: Bytes) -> Step:
        """``Send``."""
        return partial(self._world.Send, buffer, self._other, TAG)

    def receiver(self, buffer: Bytes) -> Step:
        """``Recv``."""
        return partial(self._world.Recv, buffer, self._other, TAG)

    def stream(self, window: int) -> None:
        """One window, all at once."""
        if self.first:
            send = self._world.Isend
            MPI.Request.Waitall([send(each, self._other, TAG) for each in self._buffers(self._sent, window)])
            self.await_acknowledgement()
        else:
            receive = self._world.Irecv
            MPI.Request.Waitall(
                [receive(each, self._other, TAG) for each in self._buffers(self._received, window)]
            )
            self.look()
            self.acknowledge()

    def _buffers(self, one: Any, window: int) -> list[Any]:
        """The buffer of each message of a window."""
        if self._mode != DISTINCT:
            return [one] * window
        if self._many is None or len(self._many) != window:
            self._many = [new_buffer(one.size) for _ in range(window)]
        return self._many

    def close(self) -> None:
        """Leave MPI, which waits for the other rank to do the same."""
        if self._adder is not None:
            self._adder.close()
        MPI.Finalize()
