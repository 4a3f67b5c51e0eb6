# SPDX-License-Identifier: BSD-3-Clause
"""The board of steps, as Python uses it: see ``native/steps.h``."""

import ctypes
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

__all__ = ["Action", "Board", "Fault", "Kind"]


class Kind(IntFlag):
    """What is recorded: enum step_kind."""

    CALL = 1
    SYSTEM = 2
    MEMORY = 4
    OBJECT = 8
    BYTECODE = 16
    AWAIT = 32


class Action(IntEnum):
    """What happens at a step: enum step_action."""

    PASS = 0
    FAIL = 1
    SHORT = 2
    DIE = 3
    LATE = 4
    INTERRUPT = 5
    FORK = 6
    CANCEL = 7
    DROP = 8


@dataclass(frozen=True)
class Fault:
    """What happens at which step; `more` steps that follow in this function and thread fail too."""

    kind: int
    function: str
    thread: int
    occurrence: int
    action: int
    value: int = 0
    more: int = 0


class _Step(ctypes.Structure):
    _fields_ = (
        ("caller", ctypes.c_void_p),
        ("function", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("thread", ctypes.c_uint32),
        ("occurrence", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
    )


class _Function(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 48), ("count", ctypes.c_uint32 * 16))


STEPS_MAX = 262144


class Board:
    """Steps of the run that is forked next, or that was forked last.

    Parameters
    ----------
    calls, python : str
        Paths of the libraries that make steps of the core's calls, and of what happens within Python.
    """

    def __init__(self, calls: str, python: str) -> None:
        # Its functions are those of the preloaded library. They keep the interpreter's lock: no thread of Python's runs
        # between arming and the call that is explored.
        self._steps = ctypes.PyDLL(None)
        self._steps.step_list.restype = ctypes.POINTER(_Step)
        self._steps.step_functions.restype = ctypes.POINTER(_Function)
        self._calls, self._python = ctypes.PyDLL(calls), ctypes.PyDLL(python)
        self._waiting = ctypes.CDLL(None)
        self._kinds = Kind(0)
        self._fault: Fault | None = None
        if self._steps.step_board_create() != 0:
            raise MemoryError("no memory for the board of steps")

    def replace_calls(self, addresses: list[int]) -> tuple[int, ...]:
        """Addresses that stand for those of the core's functions."""
        table = (ctypes.c_void_p * len(addresses))(*addresses)
        self._calls.step_calls_replace(table)
        return tuple(int(address or 0) for address in table)

    def set(self, kinds: Kind, fault: Fault | None, endless_naps: bool) -> None:
        """Before a run is forked."""
        chosen = fault or Fault(0, "", 0, 0, Action.PASS)
        self._kinds, self._fault = kinds, fault
        self._steps.step_board_set(
            int(kinds),
            int(endless_naps),
            chosen.kind,
            chosen.function.encode(),
            chosen.thread,
            chosen.occurrence,
            chosen.action,
            ctypes.c_int64(chosen.value),
            chosen.more,
        )

    def begin(self) -> None:
        """In the run, at its begin."""
        if self._kinds & Kind.OBJECT:
            self._python.step_objects_count()

    def arm(self) -> None:
        """From here on steps are recorded; the calling thread is the first one."""
        if self._kinds & Kind.BYTECODE:
            self._python.step_bytecodes_trace(1)
        self._steps.step_arm()

    def disarm(self) -> None:
        """Record nothing any more, and let nothing happen."""
        self._steps.step_disarm()
        if self._kinds & Kind.BYTECODE:
            self._python.step_bytecodes_trace(0)

    def reach(self, kind: Kind, name: str) -> Action:
        """A step of the caller's own. Other threads run meanwhile: a thread that is late here holds nobody up."""
        return Action(self._waiting.step_reach_named(int(kind), name.encode()))

    @property
    def happened(self) -> int:
        """How often the fault has happened."""
        return int(self._steps.step_happened())

    @property
    def has_failed_object(self) -> bool:
        """Whether the fault was an allocation of Python's that failed, and has happened."""
        return self._fault is not None and self._fault.kind == Kind.OBJECT and self.happened > 0

    @property
    def has_failed_cell(self) -> bool:
        """Whether it was as large as a cell: a variable of a function that its inner functions share."""
        return self.has_failed_object and bool(self._python.step_objects_failed_cell())

    def wait_for_fork(self) -> None:
        """Wait until a step wants this thread to fork."""
        self._waiting.step_fork_await()

    def finish_fork(self) -> None:
        """The fork has been made."""
        self._steps.step_fork_finish()

    def release_fork(self) -> None:
        """No step will want a fork any more."""
        self._steps.step_fork_release()

    def blocks_left(self) -> Counter[int]:
        """Blocks that ofipy's C has not freed: how many, by the address that allocated them."""
        room = (ctypes.c_void_p * 4096)()
        count = self._steps.step_blocks_list(room, len(room))
        return Counter(int(room[place] or 0) for place in range(min(count, len(room))))

    def names(self) -> list[str]:
        """Functions that were reached."""
        functions = self._steps.step_functions()
        return [functions[place].name.decode() for place in range(self._steps.step_function_count())]

    def counts(self) -> list[tuple[int, str, int, int]]:
        """Kind, function, thread, and how often that was reached, in the order in which they came first."""
        steps, names = self._steps.step_list(), self.names()
        found: Counter[tuple[int, int, int]] = Counter()
        for place in range(self.count):
            step = steps[place]
            found[step.kind, step.function, step.thread] += 1
        return [(kind, names[place], thread, count) for (kind, place, thread), count in found.items()]

    @property
    def count(self) -> int:
        """How many steps there were."""
        return min(int(self._steps.step_count()), STEPS_MAX)

    def story(self, length: int) -> list[dict[str, Any]]:
        """The last steps, and those at which the fault happened, as far as they are near the end or the first."""
        steps, names, count = self._steps.step_list(), self.names(), self.count
        acted = [place for place in range(count) if steps[place].action][:2]
        near = {at for place in acted for at in range(max(place - 2, 0), place + 1)}
        return [
            {
                "function": names[steps[place].function],
                "caller": steps[place].caller or 0,
                "kind": steps[place].kind,
                "thread": steps[place].thread,
                "occurrence": steps[place].occurrence,
                "action": steps[place].action,
            }
            for place in sorted(near.union(range(max(count - length, 0), count)))
        ]
