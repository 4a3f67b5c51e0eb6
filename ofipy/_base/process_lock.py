# SPDX-License-Identifier: BSD-3-Clause
"""The locks of the whole process: one list, free in a forked child.

A child has none of its parent's other threads, so a lock that one of them held would never be released there. Where the
holder imports modules, or changes several things that belong together, whoever forks holds the lock, so that nothing is
under way. Other locks, whose holders may wait for long, are made anew in the child, and so is one that does not become
free in time: its holder may wait for a lock that the fork holds, as that of :mod:`logging`.

A lock that is not of one object is one of these. Those of objects need nothing: a child uses none of its parent's. The
locks of the C core are a list of their own (``native/src/base/process_lock.h``).
"""

from __future__ import annotations

import os
from _thread import RLock  # the class that `threading` returns; importing `threading` takes 0.5 ms
from _thread import _local as local
from types import TracebackType
from typing import Any, ClassVar

__all__ = ["ProcessLock"]

_PATIENCE = 1.0  # seconds; an import takes less


class ProcessLock:
    """A lock of the whole process; its holder may take it again, since finalisers run anywhere.

    Parameters
    ----------
    name : str
        What it guards.
    held : bool
        Whoever forks waits until it is free. The locks of a module may be taken by holders of those of modules that
        import it, never the other way round.
    """

    __slots__ = ("_held", "_lock", "name")

    every: ClassVar[list[ProcessLock]] = []
    """The list, in the order of imports."""

    def __init__(self, name: str, *, held: bool) -> None:
        self.name = name
        self._held = held
        self._lock: Any = RLock()
        self.every.append(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class _Fork(local):
    """What this thread holds for the forks that it is within, the innermost last: a signal's handler may fork, too."""

    def __init__(self) -> None:
        self.held: list[list[ProcessLock]] = []


_fork = _Fork()


def _hold() -> None:
    held: list[ProcessLock] = []
    # First, since a signal's handler may raise out of the wait: what is held by then is released with the rest.
    _fork.held.append(held)
    for each in reversed(ProcessLock.every):
        if each._held and each._lock.acquire(timeout=_PATIENCE):
            held.append(each)


def _release() -> None:
    for each in _fork.held.pop():
        each._lock.release()


def _renew() -> None:
    for each in ProcessLock.every:
        if not each._lock._is_owned():  # by a thread that is not there
            each._lock = RLock()
    _release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
