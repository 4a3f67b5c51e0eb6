# SPDX-License-Identifier: BSD-3-Clause
"""A task that runs until the test tells it to end."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path

import executor_tasks as tasks
from started import wait_until

import ofipy


class Meeting:
    """A task, a file that says which process runs it, and a FIFO that ends it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.arguments = str(folder), name
        self._mine = folder / f"{name}.pid"
        os.mkfifo(folder / name)
        # Both ends, so that neither side's open waits for the other one.
        self._fifo = os.open(folder / name, os.O_RDWR)

    def submit(self, executor: ofipy.Executor) -> Future[int]:
        return executor.submit(tasks.meet, *self.arguments)

    def pid(self) -> int:
        """Of the worker that runs it, once one does."""
        wait_until(self._mine.exists, 60)
        return int(self._mine.read_text())

    def end(self) -> None:
        os.write(self._fifo, b"x")

    def forget_pid(self) -> None:
        """It is going to run again."""
        self._mine.unlink()

    def close(self) -> None:
        os.close(self._fifo)
