# SPDX-License-Identifier: BSD-3-Clause
"""Processes of tests that need many of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Start", "Worker", "starting"]


class Worker:
    """A process that runs one function of worker.py, or of another program, and talks JSON, a line each way."""

    def __init__(
        self,
        function: str,
        *arguments: object,
        before: Callable[[], None] | None = None,
        program: str = "worker.py",
    ) -> None:
        self.function = function
        self.told: list[object] = []
        self.killed = False
        self._errors = tempfile.TemporaryFile("a+")  # noqa: SIM115 (closed by close())
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name(program)), function, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            preexec_fn=before,
            cwd=tempfile.gettempdir(),
        )

    def tell(self, value: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def hear(self) -> object:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"worker {self.process.pid} ended with {self.process.wait()}"
        self.told.append(json.loads(line))
        return self.told[-1]

    def errors(self) -> str:
        """What it has written to standard error."""
        self._errors.seek(0)
        return self._errors.read()

    def kill(self) -> None:
        self.killed = True
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=60)

    def close(self) -> None:
        """End it, whatever it does; what it had to say of errors goes to the report of the test."""
        if self.process.poll() is None:
            self.kill()
        sys.stderr.write(self.errors())
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                stream.close()


Start = Callable[..., Worker]


@contextmanager
def starting() -> Iterator[Start]:
    """Start workers within this block; none outlives it."""
    started: list[Worker] = []

    def start(function: str, *arguments: object, **options: Any) -> Worker:
        worker = Worker(function, *arguments, **options)
        started.append(worker)
        return worker

    try:
        yield start
    finally:
        for worker in started:
            worker.close()
