# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py in a crowd: ``Send``, one after the other, and windows of ``Irecv`` from any source."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

from fabtests.compare.crowd import WINDOW, WORD, Crowd, Words
from fabtests.compare.peers.mpi4py_peer import mpi_version

__all__ = ["MpiCrowd"]

RECEIVER, TAG = 0, 7


class MpiCrowd(Crowd):
    """One rank."""

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._world = MPI.COMM_WORLD

    def version(self) -> str:
        """Of the binding and of the library under it."""
        return mpi_version()

    def offer(self) -> None:
        """Ranks know each other."""

    def meet(self, other: Any) -> None:
        """Ranks have met at start."""

    def send(self, words: Words) -> None:
        """``Send``: short ones have left when it returns."""
        send = self._world.Send
        for index in range(len(words)):
            send(words[index : index + 1], RECEIVER, TAG)

    send_last = send

    def receive(self) -> Iterator[Words]:
        """``Irecv`` and ``Waitall``."""
        words = np.zeros(WINDOW, WORD)
        places = [words[index : index + 1] for index in range(WINDOW)]
        receive = self._world.Irecv
        while True:
            MPI.Request.Waitall([receive(each, MPI.ANY_SOURCE, TAG) for each in places])
            yield words

    def close(self) -> None:
        """Leave MPI, which waits for the other ranks to do the same."""
        MPI.Finalize()
