# SPDX-License-Identifier: BSD-3-Clause
"""A storm of SIGINT over this process, and calls in the middle of it.

Another process sends the signals. The handler raises KeyboardInterrupt once in each :meth:`Storm.attempt` at most, and
nowhere else, as somebody's Ctrl-C comes while the program is inside a call: on its way into C, within, or on its way
out, when the result is there and nobody has it yet.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from pair import PATIENCE
from standard_locks import holds_lock_of_logging

# Seconds between two signals, on average.
INTERVAL = 0.0003

_SENDER = f"""
import os, random, signal, sys, time
target = int(sys.argv[1])
while os.getppid() == target:
    os.kill(target, signal.SIGINT)
    time.sleep(random.uniform(0, {2 * INTERVAL}))
"""

INTERRUPTED = object()


class Storm:
    """Sends from its making to the end of its block."""

    def __init__(self) -> None:
        self.attempts = 0
        self.interrupts = 0
        self.signals = 0
        self._armed = False
        self._strike: Callable[[], Any] | None = None
        # A shell's background job inherits SIGINT ignored.
        signal.signal(signal.SIGINT, self._handle)
        self._sender = subprocess.Popen([sys.executable, "-S", "-c", _SENDER, str(os.getpid())])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if self._armed and not holds_lock_of_logging(frame):
            self._armed = False
            if self._strike is None:
                raise KeyboardInterrupt
            self.interrupts += 1
            self._strike()

    def attempt(self, call: Callable[[], Any], strike: Callable[[], Any] | None = None) -> Any:
        """What the call returns, or INTERRUPTED. Whatever else it raises comes out.

        With `strike` the handler calls that, and raises nothing.

        A lambda's result, and a method's that is written in Python, is not lost on its way to the caller: the
        interpreter looks for signals after calls of C and at jumps, not at a return.
        """
        self.attempts += 1
        try:
            try:
                self._strike, self._armed = strike, True
                return call()
            finally:
                self._armed = False
        except KeyboardInterrupt:
            self.interrupts += 1
            return INTERRUPTED

    def until_done(self, call: Callable[[], Any]) -> Any:
        """Call until it was not interrupted: what may be asked twice."""
        deadline = time.monotonic() + PATIENCE
        while (result := self.attempt(call)) is INTERRUPTED:
            if time.monotonic() > deadline:
                raise AssertionError(f"not finished within {PATIENCE:g} s, and many interrupts")
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._sender.kill()
        self._sender.wait()
        # The handler stays, so that a late signal does no harm.
        time.sleep(0.01)
