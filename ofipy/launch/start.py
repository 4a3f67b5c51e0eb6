# SPDX-License-Identifier: BSD-3-Clause
"""Starting one process of a job on this host, with all that it inherits."""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ofipy.jobs.own import variables_of
from ofipy.launch.placement import Place, share_of_cores

__all__ = ["Job", "end_group", "ended", "key_descriptor", "start_here"]

_PR_SET_PDEATHSIG = 1
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


@dataclass(frozen=True, slots=True)
class Job:
    """What all processes have in common."""

    size: int
    run: str
    server: str
    """Host of rank 0, as all know it."""
    command: Sequence[str]
    pin: bool
    key: bytes


def key_descriptor(key: bytes) -> int:
    """A file without a name that holds the key, which nobody can change."""
    descriptor = os.memfd_create("ofipy-job-key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, key)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    return descriptor


async def start_here(
    job: Job, place: Place, key: int, environment: Mapping[str, str], **streams: Any
) -> asyncio.subprocess.Process:
    """Start it, in a session of its own, so that Ctrl-C at the terminal reaches nobody but us.

    Parameters
    ----------
    job, place
        Which process.
    key : int
        Descriptor that holds the key.
    environment : mapping
        What it has besides.
    **streams
        ``stdout=``, ``stderr=`` and ``cwd=``.
    """
    cores = share_of_cores(place) if job.pin else []
    host = socket.gethostname() if place.host == "localhost" else place.host
    mine = variables_of(rank=place.rank, size=job.size, run=job.run, server=job.server, host=host, key=key)
    # Threads that each process starts for itself are as many as it has cores; and what it prints comes at once.
    helpful = {"OMP_NUM_THREADS": str(max(len(cores), 1)), "PYTHONUNBUFFERED": "1"}
    return await asyncio.create_subprocess_exec(
        *job.command,
        env=helpful | dict(environment) | mine,
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(key,),
        start_new_session=True,
        preexec_fn=_preparation(cores),
        **streams,
    )


async def ended(process: asyncio.subprocess.Process) -> int:
    """Wait until it has ended; its return code. In some Pythons its own ``wait()`` waits for its pipes as well.

    Parameters
    ----------
    process : Process
        Whose pipes others may hold open after it.
    """
    over = asyncio.Event()
    with contextlib.suppress(ProcessLookupError):  # it has been waited for already
        descriptor = os.pidfd_open(process.pid)
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
    while process.returncode is None:  # until asyncio knows of it, too
        await asyncio.sleep(0.001)
    return process.returncode


def end_group(process: int) -> None:
    """End what a process that has just ended has left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def _preparation(cores: Sequence[int]) -> Callable[[], None]:
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def prepare() -> None:
        # Whatever happens to who started it, it is not left behind.
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
        if cores:
            os.sched_setaffinity(0, cores)

    return prepare
