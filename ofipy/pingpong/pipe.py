# SPDX-License-Identifier: BSD-3-Clause
"""The processes that a measuring program starts on its own machine, and the pipe between it and each of them.

A process sends reports: a word and a value. What it failed with is the report ``error``; a pipe that ends without one
is read as that of a process that died. The workers of :class:`~ofipy.pingpong.pair.Pair` answer calls, those of
``fabtests perf`` report as they go.
"""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

__all__ = [
    "DIED",
    "ERROR",
    "Failure",
    "Pipe",
    "die_with_parent",
    "exit_code_of",
    "pick_cores",
    "pin",
    "report_result",
]

PR_SET_PDEATHSIG = 1

ERROR = "error"
"""Word of the report with a :class:`Failure`."""
DIED = "died"
"""Kind of the failure of a process that is gone."""

# Of programs that end with an error of this class.
_EXIT_CODES = {"TimeoutError": 124, "ProviderUnavailable": 3}


@dataclass(frozen=True, slots=True)
class Failure:
    """What a process failed with."""

    kind: str
    """Name of the exception's class."""
    text: str
    """What to tell the user."""
    code: int = 1
    """The exit code of a program that ends with it."""

    @classmethod
    def of(cls, error: Exception, *, plain: tuple[type[Exception], ...] = (OSError,)) -> "Failure":
        """Describe an exception; those of `plain` classes explain themselves, the others by their class, too."""
        kind = type(error).__name__
        text = str(error) if isinstance(error, plain) else f"{kind}: {error}"
        code = getattr(error, "code", None)
        return cls(kind, text, code if type(code) is int else exit_code_of(kind))


def exit_code_of(kind: str) -> int:
    """The exit code of a program that ends with an error of this class."""
    return _EXIT_CODES.get(kind, 1)


class Pipe:
    """The program's end of the pipe to a process.

    Parameters
    ----------
    connection : Connection
        Closed with this.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def fileno(self) -> int:
        """To wait for."""
        return self._connection.fileno()

    def send(self, order: Any) -> None:
        """Send what the process is to do.

        Raises
        ------
        OSError
            When it is gone.
        """
        self._connection.send(order)

    def receive(self) -> tuple[str, Any]:
        """Wait for a report: its word and its value, of the word :data:`ERROR` a :class:`Failure`."""
        try:
            report: tuple[str, Any] = self._connection.recv()
        except TimeoutError:
            raise  # the deadline of the command, not the pipe
        except (EOFError, OSError):
            return ERROR, Failure(DIED, "a worker process died")
        return report

    def close(self) -> None:
        """Close it."""
        self._connection.close()


def report_result(
    connection: Connection,
    word: str,
    call: Callable[[], Any],
    *,
    plain: tuple[type[Exception], ...] = (OSError,),
) -> None:
    """In the process: make a call, and report what it returns, or what it failed with."""
    try:
        result = call()
    except Exception as error:
        connection.send((ERROR, Failure.of(error, plain=plain)))
    else:
        connection.send((word, result))


def pick_cores() -> tuple[int, int]:
    """Two cores that this process may use; twice the same one if there is no second."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[0], cores[-1] if len(cores) < 2 else cores[1]


def pin(core: int | None) -> None:
    """Run on this core from here on; None: wherever this process runs."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def die_with_parent() -> None:
    """Have the kernel end this process with its parent, and end if that is gone already.

    A measurement blocks in C without looking at its pipe, so nothing else would end it.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os._exit(1)
