# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy.job()``: one job for a process, joined at the first call."""

import os
import sys
from collections.abc import Iterable
from typing import Any

from ofipy._base.errors import FabricError, InvalidArgument
from ofipy._base.lifetime import call_before_exit_close
from ofipy._base.process_lock import process_lock
from ofipy._requests import Hold
from ofipy.jobs import addresses as listed
from ofipy.jobs import mpi
from ofipy.jobs.found import Search, search
from ofipy.jobs.job import Job
from ofipy.jobs.launcher import Deadline, Found
from ofipy.jobs.member import Member, configured_timeout

__all__ = ["job"]

_lock = process_lock("the job", held=False)
_joined: Job | None = None


def job(
    *,
    comm: Any = None,
    addresses: str | os.PathLike[str] | Iterable[str] | None = None,
    rank: int | None = None,
) -> Job:
    """Join the job that this process was started in. Call it before :func:`ofipy.open`.

    Who started it is found by the environment: ``ofipy run``, PMIx (``prterun``, ``srun --mpi=pmix``), PMI-1
    (``mpiexec`` of MPICH, ``srun --mpi=pmi2``, ``flux run``), ``torchrun``, Slurm, in this order; with none of their
    variables set the process is alone, rank 0 of 1. It is a call of every process, and waits for the others as long as
    ``OFIPY_JOB_TIMEOUT`` says. A second call returns the same job, until that is closed.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The processes of a communicator, where MPI runs in this process.
    addresses : path, or iterable of str, optional
        ``host`` or ``host:port`` for each rank; the first is where rank 0 serves. A path names a file, one a line.
    rank : int, optional
        Of this process; with `addresses`.

    Returns
    -------
    Job
        Endpoints opened from now on prove the job's key, and are found by its other processes over a network.

    Raises
    ------
    ConfigError
        When a launcher's variables are half set or do not fit, or several hosts have no key.
    TimedOut
        When a process did not come.
    NotConnected, ProviderUnavailable, AccessDenied
        When the launcher does not answer, ``libpmix.so`` is missing, or keys differ.
    InvalidArgument
        When arguments do not fit each other, or the process has joined another job.
    """
    global _joined
    if (addresses is None) != (rank is None) or (comm is not None and addresses is not None):
        raise InvalidArgument("comm=… alone, or addresses=… and rank=… are meant", operation="job")
    named = mpi.find(comm) if comm is not None else None
    if addresses is not None:
        named = listed.find(addresses, rank)
    with Hold(_lock):
        if _joined is not None and not _joined.closed:
            if named is not None:
                raise InvalidArgument(
                    f"this process is in a job already: {_joined!r}",
                    operation="job",
                    remedy="close() it first",
                )
            return _joined
        deadline = Deadline(configured_timeout())
        _joined = Job(_member(named, deadline) if named is not None else _join_found(deadline))
        return _joined


def _join_found(deadline: Deadline) -> Member:
    """Join as the environment says."""
    looked = search()
    try:
        if looked.error is not None:
            raise looked.error
        return _member(looked.found, deadline)
    except FabricError as error:
        _say_why_no_other(error, looked)
        raise


def _member(found: Found | None, deadline: Deadline) -> Member:
    member = Member(found, deadline)
    # An exception that nobody caught is all that can be known of how a process ends.
    call_before_exit_close(lambda: member.leave(died=hasattr(sys, "last_value")))
    return member


def _say_why_no_other(error: FabricError, looked: Search) -> None:
    others = {name: reason for name, reason in looked.reasons.items() if reason not in ("taken", str(error))}
    text = "; ".join(f"{name}: {reason}" for name, reason in others.items())
    error.message += f" [not {text}]"
