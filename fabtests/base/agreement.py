# SPDX-License-Identifier: BSD-3-Clause
"""Options that both sides must have alike: how they travel, what a server takes over, what becomes of a difference."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fabtests.base.options import AGREED_OPTIONS, Options
from fabtests.base.program import Failed
from fabtests.base.sizes import Sizes

__all__ = [
    "MARK",
    "Described",
    "adopt",
    "describe",
    "differences",
    "read_options",
    "refuse",
]

MARK = b"\0ofipy fabtests:"
"""What described options begin with. No C program sends that."""

_LONGEST = 900
"""Bytes of described options; they go behind a name in a block of 1024."""

_LEAST = {"-I": 1, "-w": 0, "-W": 1, "-C": 1}  # of those that are numbers


@dataclass(frozen=True, slots=True)
class Described:
    """Options of the other side."""

    values: dict[str, Any]
    """By letter."""
    given: frozenset[str]
    """Letters that its command line has."""


def _value(options: Options, letter: str) -> Any:
    name = AGREED_OPTIONS[letter]
    return options.extra.get(name) if letter == "-o" else getattr(options, name)


def describe(options: Options) -> bytes:
    """The options as they travel; nothing where a list of sizes is too long for that."""
    values = {letter: _value(options, letter) for letter in AGREED_OPTIONS}
    values["-S"] = options.sizes.written
    said = {"values": values, "given": sorted(options.given)}
    text = MARK + json.dumps(said, separators=(",", ":")).encode()
    return text if len(text) <= _LONGEST else b""


def read_options(said: bytes, *, default: int | None) -> Described | None:
    """What :func:`describe` made; None: there are none, as of a C program.

    Parameters
    ----------
    said : bytes
        What came, with anything behind it.
    default : int, optional
        The one size of the program.

    Raises
    ------
    Failed
        When it cannot be read.
    """
    if not said.startswith(MARK):
        return None
    try:
        found = json.loads(said[len(MARK) :].partition(b"\0")[0])
        values = {letter: _read_value(letter, found["values"][letter], default) for letter in AGREED_OPTIONS}
        return Described(values, frozenset(found["given"]) & AGREED_OPTIONS.keys())
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Failed(
            "the other side sends options that cannot be read; run the same version of ofipy on both"
        ) from None


def _read_value(letter: str, value: Any, default: int | None) -> Any:
    """A value that the option can have; else ValueError."""
    if letter in _LEAST:
        good = (type(value) is int and value >= _LEAST[letter]) or (letter == "-I" and value is None)
    elif letter in ("-S", "-o"):
        good = value is None or isinstance(value, str)
    else:
        good = isinstance(value, bool)
    if not good:
        raise ValueError(letter)
    return Sizes.parse(value, default=default) if letter == "-S" else value


def adopt(options: Options, theirs: Described) -> None:
    """Take over the other side's values of all options that were not given here."""
    for letter in AGREED_OPTIONS.keys() - options.given:
        if letter != "-o":
            setattr(options, AGREED_OPTIONS[letter], theirs.values[letter])
        elif "operation" in options.extra:
            options.extra["operation"] = theirs.values[letter]


def differences(options: Options, theirs: Described, among: Iterable[str] = tuple(AGREED_OPTIONS)) -> str:
    """Those of the options that differ, as a sentence has them; empty: none."""
    return ", ".join(
        f"{letter} ({_shown(_value(options, letter))} here, {_shown(theirs.values[letter])} there)"
        for letter in sorted(among)
        if _value(options, letter) != theirs.values[letter]
    )


def _shown(value: Any) -> str:
    if isinstance(value, Sizes):
        value = value.written
    if isinstance(value, bool):
        return "given" if value else "not given"
    return "not given" if value is None else str(value)


def refuse(difference: str) -> Failed | None:
    """The end of a side whose options differ from the other one's; None: they do not."""
    if not difference:
        return None
    return Failed(f"options differ between the sides: {difference}; give both the same, or the server none")
