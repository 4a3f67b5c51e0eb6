# SPDX-License-Identifier: BSD-3-Clause
"""The process that takes the fuzzer's steps, seen from the one that draws them."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from steps import Step

# Seconds within which every step has to have been taken: all of them wait less than a second.
PATIENCE = 60.0


class Side:
    """The process that takes the steps; another one after a failure."""

    def __init__(self, targets: list[str]) -> None:
        self.failure: str | None = None
        """The last one, with the steps that led to it; of a failure that was shrunk, the shortest."""
        self._targets = targets
        self._process: subprocess.Popen[bytes] | None = None

    def take(self, *steps: Step) -> list[str]:
        """Take the steps at once; none of them: end the example."""
        if self._process is None:
            self._start()
        self._connection.send(list(steps))
        try:
            if not self._connection.poll(PATIENCE):
                raise AssertionError(f"not taken within {PATIENCE:g} s: {steps}\n{self.kill(signal.SIGABRT)}")
            good, answer = self._connection.recv()
        except (EOFError, OSError):
            raise AssertionError(f"the process died in {steps}\n{self.kill()}") from None
        if not good:
            raise AssertionError(f"{answer[0]}\n{self.kill()}")
        return list(answer)

    def _start(self) -> None:
        here, there = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        program = Path(__file__).with_name("world_side.py")
        with there:
            self._process = subprocess.Popen(
                [sys.executable, str(program), str(there.fileno()), *self._targets],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                # What was posted to nobody who receives it is dropped soon: the steps are drawn, not meant.
                env={"OFIPY_LINGER": "1"} | os.environ,
                stderr=self._said,
            )
        self._connection = Connection(here.detach())

    def kill(self, number: int = signal.SIGKILL) -> str:
        """End it. Returns how it ended, and what it has said."""
        if self._process is None:
            return ""
        if self._process.poll() is None and number == signal.SIGKILL:
            self._connection.close()  # it ends when it was about to take the next step
            with_time = 5.0
        else:
            self._process.send_signal(number)
            with_time = 20.0
        try:
            status = self._process.wait(with_time)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._connection.close()
        self._said.seek(0)
        said = self._said.read()[-20_000:].decode(errors="replace")
        self._said.close()
        self._process = None
        return f"exit status {status}\n{said}"
