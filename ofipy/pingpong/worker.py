# SPDX-License-Identifier: BSD-3-Clause
"""The program of a worker process: obeys the calls that come over its control connection.

Started by :mod:`ofipy.pingpong.pair` as ``python -m ofipy.pingpong.worker ADDRESS CORES``, directly or under
``mpiexec``.
"""

import importlib
import os
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from ofipy.pingpong.pipe import die_with_parent, pin, report_result

__all__ = ["main"]

RESULT = "result"
# Ours, and those of MPICH's and Open MPI's launchers.
RANK_VARIABLES = ("FABTESTS_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")


def main(arguments: list[str]) -> int:
    """Serve until the connection closes."""
    address, cores = arguments
    die_with_parent()
    rank = next(int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ)
    allowed = cores.split(",")
    pin(int(allowed[min(rank, len(allowed) - 1)]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.connect("\0" + address)
        connection = Connection(control.detach())
    with connection:
        connection.send(rank)
        try:
            serve(connection, rank)
        except (EOFError, BrokenPipeError):
            return 1
    return 0


class Worker:
    """The object that a worker process makes, and calls of its methods."""

    def __init__(self, *, first: bool) -> None:
        self._first = first
        self._target: Any = None

    def call(self, name: str, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        """Call a method; of the name ``start``, make the object that the argument names."""
        if name == "start":
            self._target = load(arguments[0])(self._first, **options)
            return None
        return getattr(self._target, name)(*arguments, **options)

    def close(self) -> None:
        """Close the object."""
        if self._target is not None:
            self._target.close()


def serve(connection: Connection, rank: int) -> None:
    """Answer calls until told to stop."""
    worker = Worker(first=rank == 0)
    while True:
        order = connection.recv()
        if order[0] == "stop":
            break
        report_result(connection, RESULT, partial(worker.call, *order))
    worker.close()


def load(name: str) -> Callable[..., Any]:
    """Import what ``module:name`` names."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
