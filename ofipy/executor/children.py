# SPDX-License-Identifier: BSD-3-Clause
"""Worker processes that an executor has started itself, on this host."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Collection

from ofipy.executor import wire

__all__ = ["Children", "usable_cores"]

_PROGRAM = "import sys; from ofipy.executor.worker import main; sys.exit(main())"


def usable_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


class Children:
    """Processes of an executor. Its thread's loop watches them.

    Parameters
    ----------
    count : int
        How many are started.
    address : str
        Of the executor.
    """

    def __init__(self, count: int, address: str) -> None:
        command = [sys.executable, "-P", "-c", _PROGRAM, address]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended = asyncio.Event()
        try:
            for _ in range(count):
                # In sessions of their own, so that Ctrl-C at the terminal interrupts the script and not its workers.
                child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
                self._processes.append(child)
        except BaseException:
            self.kill()
            raise

    @property
    def running(self) -> int:
        """How many have not ended."""
        return sum(child.returncode is None for child in self._processes)

    def describe_failures(self) -> str:
        """How those have ended that failed; empty: none has."""
        failed = [child for child in self._processes if child.returncode]
        return ", ".join(f"process {child.pid} ended with status {child.returncode}" for child in failed)

    def watch(self, ended: Callable[[], None]) -> None:
        """Have a function called in the running loop whenever one has ended."""
        loop = asyncio.get_running_loop()
        for child in self._processes:
            descriptor = os.pidfd_open(child.pid)
            loop.add_reader(descriptor, self._reap, child, descriptor, ended)

    def _reap(self, child: "subprocess.Popen[bytes]", descriptor: int, ended: Callable[[], None]) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        child.wait()
        self._ended.set()
        ended()

    async def wait(self) -> None:
        """Wait until all have ended; :meth:`watch` was called before."""
        while self.running:
            self._ended.clear()
            await self._ended.wait()

    def kill(self, *, beside: Collection[str] = ()) -> None:
        """End them at once.

        Parameters
        ----------
        beside : collection of str
            Names of workers that are not to be ended.
        """
        for child in self._processes:
            if wire.worker_name(child.pid) not in beside:
                child.kill()
