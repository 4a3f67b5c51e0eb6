# SPDX-License-Identifier: BSD-3-Clause
"""Processes for tests that need many of them: started, watched and, whatever happens, ended here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("worker.py")


class Worker:
    """A process that runs one function of worker.py and talks JSON, a line each way."""

    def __init__(self, function: str, *arguments: object, before: Callable[[], None] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER), function, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
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
        return json.loads(line)

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@pytest.fixture
def workers() -> Iterator[Callable[..., Worker]]:
    started: list[Worker] = []

    def start(function: str, *arguments: object, before: Callable[[], None] | None = None) -> Worker:
        worker = Worker(function, *arguments, before=before)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        if worker.process.poll() is None:
            worker.kill()
        for stream in (worker.process.stdin, worker.process.stdout):
            if stream is not None and not stream.closed:
                stream.close()
