# SPDX-License-Identifier: BSD-3-Clause
"""What every program that is explored has in common."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from board import Board, Kind

__all__ = ["PATIENCE", "Program", "Spoiled", "Stage", "Wrong"]

PATIENCE = 6.0
"""Seconds within which whatever is waited for ends, on a machine that is busy; less than the limit of a run."""


class Wrong(AssertionError):
    """Something must not be as it is; the text is the verdict."""


class Spoiled(SystemExit):
    """Python's own code had no memory, and lost what it had to do: the run shows nothing of ofipy.

    An event loop lets it out of its handlers of exceptions.
    """


@dataclass
class Stage:
    """A run, as its program sees it."""

    board: Board
    random: random.Random
    notes: list[str] = field(default_factory=list)
    """What a reader of a verdict needs to know."""

    @property
    def has_fault(self) -> bool:
        """Whether the fault has happened."""
        return self.board.happened > 0


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes
    ----------
    name : str
        ``group/target/case``.
    kinds : Kind
        Steps at which faults happen.
    run : callable
        Gets the stage. It arms and disarms the board, and raises if anything is wrong that a fault does not excuse.
    warm : callable
        Makes what is made once in a process and stays, before anything is counted.
    has_endless_naps : bool
        Whether a sleep of the core's that nothing ends lasts for ever: for programs without timeouts.
    lists_blocks : bool
        Whether memory of ofipy's C that is left at the end is a fault.
    """

    name: str
    kinds: Kind
    run: Callable[[Stage], None]
    warm: Callable[[Stage], None] = lambda stage: None
    has_endless_naps: bool = False
    lists_blocks: bool = True
