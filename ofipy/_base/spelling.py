# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables ``OFIPY_…`` that nothing reads: most are misspelt names of parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from ofipy._base.binding import lib, logger
from ofipy._base.config import parameters
from ofipy._base.record import Record

__all__ = ["UnknownVariable", "unknown_variables", "warn_of_misspelt"]

_PREFIX = "OFIPY_"
_MOST_LETTERS = 2  # that differ in a misspelt name

# Variables that a launcher hands to its processes; they are no parameters, since no user sets them.
_OF_JOBS = frozenset(f"{_PREFIX}JOB_{name}" for name in ("HOST", "ID", "KEY_FD", "RANK", "SERVER", "SIZE"))

_declared = 0  # parameters, when the environment was last looked at
_told: set[str] = set()


class UnknownVariable(Record):
    """A variable in the environment that looks like a parameter and is none."""

    name: str
    """Such as ``OFIPY_PROVIDR``."""
    near: str
    """The parameter that is probably meant: at most two letters differ; empty: none is near."""


def _letters_between(one: str, other: str) -> int:
    """How many letters have to be replaced, added or left out to make one word the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row[0] = row[0], i
        for j, wanted in enumerate(other, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (letter != wanted))
    return row[-1]


def _nearest(name: str, known: Iterable[str]) -> str:
    close = [each for each in known if abs(len(each) - len(name)) <= _MOST_LETTERS]
    distances = [(_letters_between(name, each), each) for each in close]
    least, near = min(distances, default=(_MOST_LETTERS + 1, ""))
    return near if least <= _MOST_LETTERS else ""


def unknown_variables() -> list[UnknownVariable]:
    """Every variable ``OFIPY_…`` that no parameter declared so far has, by name."""
    present = {name for name in os.environ if name.startswith(_PREFIX)} - _OF_JOBS
    if not present:
        return []
    known = [parameter.name for parameter in parameters()]
    return [UnknownVariable(name=name, near=_nearest(name, known)) for name in sorted(present - {*known})]


def warn_of_misspelt(owners: Callable[[], Iterable[str]]) -> None:
    """Log each variable whose name is nearly that of a parameter, once in a process.

    Parameters
    ----------
    owners : callable
        Returns the names of installed providers that are not loaded. What begins with one of them may be that
        provider's, which has not declared its parameters yet. Not called where no name is nearly right.
    """
    global _declared
    count = lib.ofp_param_count()
    if count == _declared:
        return
    _declared = count
    misspelt = [each for each in unknown_variables() if each.near and each.name not in _told]
    if not misspelt:
        return
    others = tuple(f"{_PREFIX}{owner.upper()}_" for owner in owners()) or ("\0",)
    for each in misspelt:
        if not each.name.startswith(others):
            _told.add(each.name)
            logger("ofipy.config").warning(
                "the environment has %s, which nothing reads; did you mean %s?", each.name, each.near
            )
