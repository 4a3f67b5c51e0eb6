# SPDX-License-Identifier: BSD-3-Clause
"""dask.distributed over its own ``tcp``: client and scheduler in the first process, and one worker with one thread."""

import warnings
from importlib.metadata import version
from typing import Any

from distributed import Client, LocalCluster

from fabtests.compare.tasks import Executing, Run, Tasks
from fabtests.compare.worker_process import WorkerProcess

__all__ = ["DaskTasks"]

_SECONDS = "60"


class _Executor(Executing):
    def __init__(self, client: Any) -> None:
        self._client = client

    # Not pure: dask would compute equal calls once, and hash the arguments to find them.

    def map(self, function: Run, count: int) -> int:
        return sum(self._client.gather(self._client.map(function, range(count), pure=False)))

    def call(self, function: Run, argument: Any) -> Any:
        return self._client.submit(function, argument, pure=False).result()


class DaskTasks(Tasks):
    """A cluster without workers, and a process that joins it."""

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._cluster: Any = None
        self._client: Any = None
        self._worker: WorkerProcess | None = None
        if first:
            warnings.filterwarnings("ignore", "Sending large graph")  # a large argument is what is measured
            self._cluster = LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=None)
            self._client = Client(self._cluster)

    def version(self) -> str:
        """Of distributed."""
        return version("distributed")

    def offer(self) -> str | None:
        """The scheduler's address."""
        return None if self._cluster is None else str(self._cluster.scheduler_address)

    def meet(self, other: Any) -> None:
        """The second side starts the worker."""
        if self._cluster is None:
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", _SECONDS]
            self._worker = WorkerProcess("distributed.cli.dask_worker", other, *options)

    def executor(self) -> Executing:
        """Once its worker is ready."""
        self._client.wait_for_workers(1, timeout=float(_SECONDS))
        return _Executor(self._client)

    def close(self) -> None:
        """End worker and cluster."""
        for each in (self._client, self._cluster, self._worker):
            if each is not None:
                each.close()
