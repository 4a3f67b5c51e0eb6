# SPDX-License-Identifier: BSD-3-Clause
"""Running a job: start all, pass on what they print, end all when one fails or Ctrl-C asks for it."""

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import dataclass, field

from ofipy._base.errors import InvalidArgument
from ofipy.jobs import keys
from ofipy.launch.agent import describe
from ofipy.launch.output import Output
from ofipy.launch.placement import Place, is_here
from ofipy.launch.start import Job, end_group, ended, key_descriptor, start_here

__all__ = ["run"]

_GRACE_SECONDS = 1.0  # between asking the others to end and making them
_DRAIN_SECONDS = 0.5  # for what is still in a pipe when its process has ended
_PASSED_ON = ("OFIPY_", "PYTHON", "OMP_")  # of the environment, to other hosts
INTERRUPTED = 130


def run(
    places: Sequence[Place],
    command: Sequence[str],
    *,
    ssh: str = "ssh",
    pin: bool = True,
    keep_going: bool = False,
) -> int:
    """Run a program as a job.

    Parameters
    ----------
    places : sequence of Place
        A process each.
    command : sequence of str
        The program and its arguments.
    ssh : str
        Command that runs another one on another host.
    pin : bool
        Give each process cores of its own where there are enough.
    keep_going : bool
        Leave the others when one fails.

    Returns
    -------
    int
        0, or the exit status of the first process that failed: 128 and the number of the signal that ended it.
    """
    here = [is_here(place.host) for place in places]
    if places[0].host == "localhost" and not all(here):
        raise InvalidArgument(
            "--hosts begins with localhost, and other hosts must find rank 0 there",
            remedy="name this host as the others know it",
        )
    server = "localhost" if all(here) else places[0].host
    job = Job(len(places), secrets.token_hex(8), server, list(command), pin, keys.new())
    return asyncio.run(_Run(job, ssh, keep_going).run(places))


@dataclass(eq=False)
class _Process:
    place: Place
    process: asyncio.subprocess.Process
    remote: bool
    copies: list[asyncio.Task[None]] = field(default_factory=list)
    waiting: asyncio.Task[None] | None = None

    def signal(self, number: int) -> None:
        """Signal the process, and whatever it has started."""
        if self.process.returncode is not None:
            return
        if not self.remote:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
        elif self.process.stdin is not None:
            self.process.stdin.write(b"%d\n" % number)


class _Run:
    def __init__(self, job: Job, ssh: str, keep_going: bool) -> None:
        self._job = job
        self._keep_going = keep_going
        self._ssh = shlex.split(ssh)
        self._output = Output(job.size, sys.stdout.buffer, sys.stderr.buffer)
        self._processes: list[_Process] = []
        self._ended: asyncio.Queue[_Process] = asyncio.Queue()
        self._interrupts = 0
        self._ending: asyncio.Task[None] | None = None

    async def run(self, places: Sequence[Place]) -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, 128 + number)
        self._status = 0
        failed: _Process | None = None
        descriptor = key_descriptor(self._job.key)
        try:
            for place in places:
                await self._start(place, descriptor)
            for _ in places:
                process = await self._ended.get()
                if (
                    process.process.returncode
                    and not self._interrupts
                    and not self._status
                    and failed is None
                ):
                    failed = process
                    if not self._keep_going:
                        self._end(_status(process))
        finally:
            os.close(descriptor)
            for process in self._processes:
                process.signal(signal.SIGKILL)
            await self._drain()
        if failed is not None:
            self._output.repeat_errors(failed.place.rank)
            print(f"ofipy run: {_describe(failed)}", file=sys.stderr)
        if self._interrupts:
            return INTERRUPTED
        return self._status or (0 if failed is None else _status(failed))

    async def _start(self, place: Place, descriptor: int) -> None:
        remote = not is_here(place.host)
        if remote:
            child = await self._start_there(place)
        else:
            child = await start_here(self._job, place, descriptor, os.environ, stdout=PIPE, stderr=PIPE)
        process = _Process(place, child, remote)
        self._processes.append(process)
        for number, reader in ((1, child.stdout), (2, child.stderr)):
            assert reader is not None
            copy = asyncio.create_task(self._output.copy(place.rank, reader, number))
            copy.add_done_callback(self._copied)
            process.copies.append(copy)
        process.waiting = asyncio.create_task(self._wait(process))
        if self._interrupts or self._status:  # it comes too late
            process.signal(signal.SIGKILL)

    async def _start_there(self, place: Place) -> asyncio.subprocess.Process:
        environment = {name: text for name, text in os.environ.items() if name.startswith(_PASSED_ON)}
        agent = shlex.join([sys.executable, "-P", "-m", "ofipy.launch.agent"])
        told = describe(self._job, place, os.getcwd(), environment)
        child = await asyncio.create_subprocess_exec(
            *self._ssh,
            place.host,
            agent,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        assert child.stdin is not None
        child.stdin.write(told)
        return child

    async def _wait(self, process: _Process) -> None:
        await ended(process.process)
        if not process.remote:
            end_group(process.process.pid)
        await self._ended.put(process)

    async def _drain(self) -> None:
        copies = [copy for process in self._processes for copy in process.copies]
        if copies:
            _, late = await asyncio.wait(copies, timeout=_DRAIN_SECONDS)
            for copy in late:  # somebody has it open who left the process' group
                copy.cancel()
            for process in self._processes:
                process.process._transport.close()  # type: ignore[attr-defined]  # nothing public closes a pipe
        for copy in copies:
            if copy.done() and not copy.cancelled():
                copy.result()

    def _copied(self, copy: asyncio.Task[None]) -> None:
        if not copy.cancelled() and copy.exception() is not None:  # nobody reads what we write
            self._end(1)

    def _interrupt(self) -> None:
        self._interrupts += 1
        for process in self._processes:
            process.signal(signal.SIGINT if self._interrupts == 1 else signal.SIGKILL)

    def _end(self, status: int) -> None:
        self._status = self._status or status
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_all())

    async def _end_all(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                process.signal(number)
            await asyncio.sleep(_GRACE_SECONDS)
        for process in self._processes:  # ssh whose other side does not answer
            if process.process.returncode is None:
                process.process.kill()


def _status(process: _Process) -> int:
    code = process.process.returncode or 0
    return code if code >= 0 else 128 - code


def _describe(process: _Process) -> str:
    code, place = process.process.returncode or 0, process.place
    who = f"rank {place.rank}" + ("" if place.host == "localhost" else f" on {place.host}")
    if code < 0:
        return f"{who} was ended by {signal.Signals(-code).name}"
    return f"{who} failed with exit status {code}"
