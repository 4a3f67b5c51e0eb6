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
from collections import deque
from operator import methodcaller
from typing import Any, NamedTuple

__all__ = ["every", "process_lock"]

_PATIENCE = 1.0  # seconds; an import takes less


class ProcessLock(NamedTuple):
    """A lock of the list."""

    name: str
    """What it guards."""
    held: bool
    """Whoever forks waits until it is free."""
    lock: Any


every: list[ProcessLock] = []
"""The list, in the order of imports."""


def process_lock(name: str, *, held: bool) -> Any:
    """Make a lock of the whole process, for ``with Hold(lock):``.

    Its holder may take it again, since finalisers run anywhere.

    Parameters
    ----------
    name : str
        What it guards.
    held : bool
        Whoever forks waits until it is free. The locks of a module may be taken by holders of those of modules that
        import it, never the other way round.
    """
    every.append(ProcessLock(name, held, RLock()))
    return every[-1].lock


class _Fork(local):
    """What this thread holds for the forks that it is within; a signal's handler may fork, too."""

    def __init__(self) -> None:
        # None, then the locks of the fork, and so on for the forks within.
        self.held: list[Any] = []


_fork = _Fork()
_take = methodcaller("acquire", timeout=_PATIENCE)
_let_go = methodcaller("release")


def _hold() -> None:
    wanted = [each.lock for each in reversed(every) if each.held]
    _fork.held.append(None)
    # In C, so that a signal's handler which raises comes before a lock is taken, or when it is in the list.
    _fork.held.extend(filter(_take, wanted))


def _release() -> None:
    # In C for the same reason.
    deque(map(_let_go, iter(_fork.held.pop, None)), maxlen=0)


def _renew() -> None:
    for each in every:
        if not each.lock._is_owned():  # by a thread that is not there
            each.lock._at_fork_reinit()
    _release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
