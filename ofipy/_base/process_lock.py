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
from functools import partial
from typing import Any, NamedTuple

from ofipy._requests import acquire_for_fork, release_after_fork, repair_after_fork

__all__ = ["ProcessLock", "every", "process_lock"]


class ProcessLock(NamedTuple):
    """A lock of the list."""

    name: str
    """What it guards."""
    lock: Any


every: list[ProcessLock] = []
"""The list, in the order of imports."""

_locks: list[Any] = []
_locks_to_hold: list[Any] = []  # in the order in which a fork acquires them


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
    lock = RLock()
    every.append(ProcessLock(name, lock))
    _locks.append(lock)
    if held:
        _locks_to_hold.insert(0, lock)
    return lock


os.register_at_fork(
    before=partial(acquire_for_fork, _locks_to_hold),
    after_in_parent=release_after_fork,
    after_in_child=partial(repair_after_fork, _locks),
)
