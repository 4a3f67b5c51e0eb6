# SPDX-License-Identifier: BSD-3-Clause
"""Tasks for executors: of a module of their own, which workers import quickly."""

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

state: list[Any] = []
"""Of a worker."""


def pid() -> int:
    return os.getpid()


def square(number: int) -> int:
    return number * number


def add(one: int, other: int = 100) -> int:
    return one + other


def apply(function: Any, arguments: Any) -> Any:
    return function(*arguments)


def fail(text: str) -> None:
    raise ValueError(text)


def set_state(value: Any) -> None:
    state.append((os.getpid(), value))


def get_state() -> list[Any]:
    return state


def meet(folder: str, name: str) -> int:
    """Say by a file that the task runs, then wait until something is written to the FIFO of that name."""
    mine = Path(folder, f"{name}.pid")
    mine.with_suffix(".new").write_text(str(os.getpid()))
    mine.with_suffix(".new").rename(mine)
    fifo = os.open(Path(folder, name), os.O_RDONLY)
    os.read(fifo, 1)
    os.close(fifo)
    return os.getpid()


def die_until(folder: str, times: int) -> int:
    """Kill the worker, at most so often; then return how often the task has begun."""
    begun = len(os.listdir(folder))
    Path(folder, str(begun)).touch()
    if begun < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return begun


def peak_growth(array: Any) -> tuple[int, int]:
    """Sum of an array, and the bytes by which the peak of this process's memory exceeds ``state``."""
    return int(array.sum()), peak() - state[-1][1]


def note_peak() -> None:
    state.append((os.getpid(), peak()))


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def zeros(size: int) -> Any:
    import numpy as np

    return np.zeros(size, np.uint8)


class Unpicklable:
    """Says so when it is pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("this one cannot travel")


def make_unpicklable() -> Unpicklable:
    return Unpicklable()


def _refuse() -> None:
    raise LookupError("this one cannot arrive")


class Unreadable:
    """Can be pickled, and not be read."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def make_unreadable() -> Unreadable:
    return Unreadable()


class TwoArguments(Exception):
    """As many exceptions in the wild: pickles, and cannot be read again."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one)


def raise_two_arguments() -> None:
    raise TwoArguments("one", "other")


def leave() -> None:
    sys.exit(3)


def switches(process: int, thread: int | None = None) -> int:
    """How often the threads of a process, or one of them, have slept."""
    count = 0
    folder = Path(f"/proc/{process}/task")
    for task in folder.iterdir() if thread is None else [folder / str(thread)]:
        with contextlib.suppress(FileNotFoundError):
            count += int((task / "status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return count
