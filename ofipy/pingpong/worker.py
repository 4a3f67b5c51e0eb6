# SPDX-License-Identifier: BSD-3-Clause
"""The program of a worker process: obeys the calls that come over its control connection.

Started by :mod:`ofipy.pingpong.pair` as ``python -m ofipy.pingpong.worker ADDRESS CORES``, directly or under
``mpiexec``.
"""

import ctypes
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["main"]

PR_SET_PDEATHSIG = 1
# Ours, and those of MPICH's and Open MPI's launchers.
RANK_VARIABLES = ("FABTESTS_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")


def main(arguments: list[str]) -> int:
    """Serve until the connection closes."""
    address, cores = arguments
    # A measurement blocks in C without looking at the control connection, so the kernel must end it with its
    # parent.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    rank = next(int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ)
    allowed = cores.split(",")
    os.sched_setaffinity(0, {int(allowed[min(rank, len(allowed) - 1)])})
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


def serve(connection: Connection, rank: int) -> None:
    """Make the object that was asked for, then call its methods until told to stop."""
    target: Any = None
    while True:
        name, arguments, options = connection.recv()
        if name == "stop":
            break
        try:
            if name == "start":
                target = load(arguments[0])(rank == 0, **options)
                result = None
            else:
                result = getattr(target, name)(*arguments, **options)
        except Exception as error:
            connection.send((False, (type(error).__name__, describe(error))))
        else:
            connection.send((True, result))
    if target is not None:
        target.close()


def describe(error: Exception) -> str:
    """What to tell the user: those of the operating system and of ofipy explain themselves."""
    return str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


def load(name: str) -> Callable[..., Any]:
    """Import what ``module:name`` names."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
