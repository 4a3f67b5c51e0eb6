# SPDX-License-Identifier: BSD-3-Clause
"""One run of a program, in a process of its own: its verdict, and what is left when everything is closed."""

import faulthandler
import gc
import random
import signal
import sys
import traceback
from types import CellType
from typing import Any

from board import Board
from pair import Leftovers
from program import Program, Spoiled, Stage

__all__ = ["run_program"]

COLLECTIONS = 4

Blocks = list[tuple[int, int]]
"""Addresses that allocated, and how many blocks of each are left."""

_IGNORED = ("KeyboardInterrupt", "MemoryError")


def describe(error: BaseException) -> str:
    """An exception as a verdict: one line."""
    text = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def run_program(board: Board, program: Program, seed: int) -> dict[str, Any]:
    """Run it, and return verdict, notes, and the blocks that are left."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ignored: list[str] = []
    sys.unraisablehook = lambda what: ignored.append(f"{what.exc_value!r} in {what.object!r}")
    stage = Stage(board, random.Random(seed))
    program.warm(stage)
    leftovers = Leftovers()
    verdict: str | None = None
    left: Blocks = []
    board.begin()
    try:
        program.run(stage)
    except Spoiled as what:
        board.disarm()
        return {"verdict": None, "notes": [*stage.notes, f"spoiled: {what}"], "left": []}
    except BaseException as error:
        board.disarm()
        verdict = describe(error)
        stage.notes += traceback.format_exc().splitlines()[-40:]
    board.disarm()
    if verdict is None:
        verdict, left = check_leftovers(board, program, leftovers)
    # An interrupt that Python delivers within a finaliser is lost, whatever a library does, and so is its memory's end.
    unexpected = [what for what in ignored if not what.startswith(_IGNORED)]
    if verdict is None and unexpected:
        verdict = f"an exception within a finaliser: {unexpected[0]}"
    return {"verdict": verdict, "notes": stage.notes, "left": left}


def has_lost_reference() -> bool:
    """Whether an object has a reference that nobody has: one of ofipy's with a close(), or a cell that holds one.

    Where CPython 3.11 has no memory for all variables of a function that its inner functions share, it never frees
    the cells that it has made, nor the arguments that it has not yet put into one.
    """
    objects = gc.get_objects()
    ours = [each for each in objects if (is_ours(each) and hasattr(each, "close")) or holds_ours(each)]
    del objects  # it refers to each of them
    # Not among the referrers: the variable of the loop, and the argument of getrefcount().
    return any(sys.getrefcount(each) - 2 > len(gc.get_referrers(each)) for each in ours)


def is_ours(value: object) -> bool:
    """Whether this is an object of ofipy's."""
    return type(value).__module__.startswith("ofipy")


def holds_ours(value: object) -> bool:
    """Whether this is a cell that holds an object of ofipy's."""
    try:
        return isinstance(value, CellType) and is_ours(value.cell_contents)
    except ValueError:  # it is empty
        return False


def check_leftovers(board: Board, program: Program, leftovers: Leftovers) -> tuple[str | None, Blocks]:
    """Whether descriptors, threads or shared memory are left, now that everything is closed; and blocks that are."""
    try:
        leftovers.check()
    except AssertionError as error:
        return f"leak: {error}", []
    if not program.lists_blocks:
        return None, []
    # What was in a circle of references is freed by the collector, and what that kept by the next one.
    for _ in range(COLLECTIONS):
        if not board.blocks_left():
            break
        gc.collect()
    left = sorted(board.blocks_left().items())
    return None, [] if left and board.has_failed_cell and has_lost_reference() else left
