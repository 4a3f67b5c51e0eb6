# SPDX-License-Identifier: BSD-3-Clause
"""A job that MPI has joined already: what launchers do otherwise, a communicator of mpi4py does."""

import socket
from collections.abc import Iterable, Mapping
from typing import Any

from ofipy._base.errors import InvalidArgument
from ofipy.jobs.launcher import Deadline, Found

__all__ = ["NAME", "Communicator", "find"]

NAME = "mpi4py"


def find(comm: Any) -> Found:
    """The processes of a communicator.

    Raises
    ------
    InvalidArgument
        When it is none.
    """
    missing = [name for name in ("Get_rank", "Get_size", "allgather") if not hasattr(comm, name)]
    if missing:
        raise InvalidArgument(
            f"comm={comm!r} has no {', '.join(missing)}; a communicator of mpi4py is meant", operation="job"
        )
    launcher = Communicator(comm)
    return Found(NAME, launcher.rank, launcher.size, {}, lambda deadline, key: launcher)


class Communicator:
    """As of a launcher."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.host = socket.gethostname()

    def fence(
        self, values: Mapping[str, bytes], wanted: Iterable[str], deadline: Deadline
    ) -> dict[str, bytes]:
        """As of a launcher; how long MPI waits is MPI's affair."""
        everything: dict[str, bytes] = {}
        for each in self._comm.allgather(dict(values)):
            everything |= each
        return {name: everything[name] for name in wanted}

    def close(self) -> None:
        """Nothing: the communicator is the program's."""
