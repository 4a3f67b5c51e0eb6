# SPDX-License-Identifier: BSD-3-Clause
"""ofipy as an executor with one worker, ``ofipy worker``."""

from importlib.metadata import version
from typing import Any

import ofipy
from fabtests.compare.tasks import Executing, Run, Tasks
from fabtests.compare.worker_process import WorkerProcess

__all__ = ["OfipyTasks"]

_SECONDS = 60.0


class _Executor(Executing):
    def __init__(self, executor: ofipy.Executor) -> None:
        self._executor = executor

    def map(self, function: Run, count: int) -> int:
        return sum(self._executor.map(function, range(count)))

    def call(self, function: Run, argument: Any) -> Any:
        return self._executor.submit(function, argument).result()


class OfipyTasks(Tasks):
    """An executor that listens, and a process that joins it."""

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._executor = ofipy.Executor(listen=0) if first else None
        self._worker: WorkerProcess | None = None

    def version(self) -> str:
        """Of ofipy."""
        return version("ofipy")

    def offer(self) -> str | None:
        """The executor's address."""
        return None if self._executor is None else str(self._executor.address)

    def meet(self, other: Any) -> None:
        """The second side starts the worker."""
        if self._executor is None:
            self._worker = WorkerProcess("ofipy", "worker", other)

    def executor(self) -> Executing:
        """Once its worker is ready."""
        assert self._executor is not None, "of the first side"
        return _Executor(self._executor.bootup(timeout=_SECONDS))

    def close(self) -> None:
        """Dismiss the worker."""
        if self._executor is not None:
            self._executor.shutdown()
        if self._worker is not None:
            self._worker.close()
