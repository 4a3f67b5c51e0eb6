# SPDX-License-Identifier: BSD-3-Clause
"""The cases of ``tests/api/storm_*.py``, each public call with its own check, and one fault at a step within.

There signals come by chance. Here one comes at a step, or an allocation of Python's fails there, or a call of the core
answers what it may answer at any time.
"""

import asyncio
import selectors
import signal
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import interrupts  # enters all cases
from board import Kind
from pair import PATIENCE, Pair
from program import Program, Spoiled, Stage
from standard_locks import holds_lock_of_logging
from storm import INTERRUPTED
from storm_cases import CASES, Case, Scene
from targets import lacks

import ofipy
from ofipy._base.binding import lib

__all__ = ["list_programs"]

assert interrupts.CASES is CASES

TARGETS = ("shm", "tcp", "link", "rdmfake", "tcp/msg")
ROUNDS = 2
STORMS_ONLY = frozenset(("tsend-full",))
"""Cases that go on only when something interrupts them."""
LOOP = (str(Path(asyncio.__file__).parent), selectors.__file__)
"""Code of an event loop."""
LIBRARY = str(Path(ofipy.__file__).parent)
CALLS = Kind.CALL | Kind.BYTECODE | Kind.OBJECT


def is_lost_by_python(error: BaseException) -> bool:
    """Whether Python's own code had no memory for what it had to do, and no code of ofipy's was told.

    An event loop that has no memory for an event or a callback drops it. In rare places of CPython an error is not set.
    """
    if isinstance(error, SystemError):
        return str(error).startswith("<function")
    if not isinstance(error, MemoryError):
        return False
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [code.co_name for code in codes if code.co_filename.startswith(LIBRARY)]
    # A turn of the poller runs tasks, and they call the loop as they do without it.
    return codes[-1].co_filename.startswith(LOOP) and (not ours or ours[-1] == "turn")


_tell_of_exception = asyncio.BaseEventLoop.default_exception_handler


def end_if_lost(loop: asyncio.BaseEventLoop, context: dict[str, Any]) -> None:
    """Stands for the loop's own handler of exceptions that come out of callbacks."""
    error = context.get("exception")
    if error is not None and is_lost_by_python(error):
        raise Spoiled(f"the loop lost a callback: {error!r}")
    _tell_of_exception(loop, context)


asyncio.BaseEventLoop.default_exception_handler = end_if_lost  # type: ignore[method-assign]


class StepStorm:
    """Stands for a :class:`storm.Storm`: what is attempted is explored."""

    def __init__(self, stage: Stage) -> None:
        self._board, self._stage = stage.board, stage
        self._armed = False
        self._strike: Callable[[], Any] | None = None
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._armed and not holds_lock_of_logging(frame):
            self._armed = False
            strike, self._strike = self._strike, None
            if strike is None:
                raise KeyboardInterrupt
            strike()

    def attempt(self, call: Callable[[], Any], strike: Callable[[], Any] | None = None) -> Any:
        """What the call returns, or INTERRUPTED, as there; no memory for an object is an interrupt like another.

        The library's own error of that kind says what became of an operation, and comes out.
        """
        result: Any = INTERRUPTED
        try:
            self._strike, self._armed = strike, True
            self._board.arm()
            result = call()
            # Before any call, which may run the handler: the result is there now.
            self._strike, self._armed = None, False
            self._board.disarm()
        except (KeyboardInterrupt, MemoryError, SystemError) as error:
            # The fault happens once. If it was an allocation of the lines above, the result is there.
            self._strike, self._armed = None, False
            self._board.disarm()
            if self._board.has_failed_object and is_lost_by_python(error):
                raise Spoiled(f"Python lost something: {error!r}") from error
            if not self._board.happened or isinstance(error, ofipy.NoMemory | SystemError):
                raise
            self._stage.notes += ["interrupted here:", *traceback.format_exc().splitlines()[-5:]]
        except BaseException:
            self._strike, self._armed = None, False
            self._board.disarm()
            raise
        return result

    def until_done(self, call: Callable[[], Any]) -> Any:
        """Call until it was not interrupted."""
        while (result := self.attempt(call)) is INTERRUPTED:
            pass
        return result


def run_case(target: str, case: Case, stage: Stage) -> None:
    """Some rounds, and a message at the end."""
    storm: Any = StepStorm(stage)
    scene = Scene(storm, target, Pair(target, case.options), stage.random)
    try:
        run_rounds(case, scene, stage)
        send_fresh(scene.pair)
    except Spoiled:
        raise
    except BaseException:
        scene.close()
        raise
    scene.close()


def run_rounds(case: Case, scene: Scene, stage: Stage) -> None:
    """Some rounds, or as many as pass until the program is told of a message that is lost; then nothing is waited for.

    A receive of unknown size ends with NoMemory if the allocation for its message is the one that fails.
    """
    try:
        for number, _ in enumerate(case.rounds(scene), start=1):
            if number >= ROUNDS:
                break
    except ofipy.NoMemory as error:
        if error.length is None or not stage.board.has_failed_object:
            raise
        stage.notes.append(f"told lost: {error}")
        lib.ofp_param_set(b"LINGER", b"0")


def send_fresh(pair: Pair) -> None:
    """A message each way passes after all that."""
    for here, there, peer in ((pair.a, pair.b, pair.to_b), (pair.b, pair.a, pair.to_a)):
        sending = here.tsend(b"fresh message", peer, tag=99)
        if bytes(there.trecv(tag=99).wait(timeout=PATIENCE).data) != b"fresh message":
            raise AssertionError("a fresh message arrived as another one")
        sending.wait(timeout=PATIENCE)


def list_programs() -> list[Program]:
    """Each case over each target that has what it needs."""
    result = []
    for target in TARGETS:
        warm(target)
        for name, case in CASES.items():
            if (
                name in STORMS_ONLY
                or lacks(target, case.needs)
                or not (case.connected or not target.endswith("/msg"))
            ):
                continue
            group = case.rounds.__module__.removeprefix("storm_")
            result.append(
                Program(
                    f"{group}/{target.replace('/', '-')}/{name}",
                    CALLS,
                    partial(run_case, target, case),
                )
            )
    return result


def warm(target: str) -> None:
    """Make what a process makes once, and uses for ever."""
    pair = Pair(target)
    send_fresh(pair)
    pair.close()
