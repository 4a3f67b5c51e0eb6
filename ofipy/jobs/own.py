# SPDX-License-Identifier: BSD-3-Clause
"""The variables of ``ofipy run``, and the descriptor by which it hands over the job's key."""

import os

from ofipy.jobs.launcher import Environment, Found
from ofipy.jobs.rendezvous import Meeting, found, ports

__all__ = ["NAME", "find", "variables_of"]

NAME = "ofipy run"
_NAMES = ("OFIPY_JOB_RANK", "OFIPY_JOB_SIZE")
_KEY_MAX = 1024


def variables() -> Environment:
    """Those that say that it is this."""
    return Environment(
        NAME,
        (*_NAMES, "OFIPY_JOB_ID"),
        "start the program with ofipy run, or unset what is set of OFIPY_JOB_*",
    )


def variables_of(*, rank: int, size: int, run: str, server: str, host: str, key: int) -> dict[str, str]:
    """What a process is given: `key` is a descriptor, from which any number of processes may read."""
    return {
        "OFIPY_JOB_RANK": str(rank),
        "OFIPY_JOB_SIZE": str(size),
        "OFIPY_JOB_ID": run,
        "OFIPY_JOB_SERVER": server,
        "OFIPY_JOB_HOST": host,
        "OFIPY_JOB_KEY_FD": str(key),
    }


def find() -> Found | None:
    """The launcher, None when nothing of it is set.

    Raises
    ------
    ConfigError
        When its variables are half set.
    """
    environment = variables()
    if not environment.is_set():
        return None
    rank, size = environment.rank_and_size(("OFIPY_JOB_RANK",), ("OFIPY_JOB_SIZE",))
    key = _read_key(environment)
    meeting = Meeting(
        run=f"{NAME} {environment.text('OFIPY_JOB_ID')}",
        rank=rank,
        size=size,
        server=environment.text("OFIPY_JOB_SERVER"),
        ports=ports(None, environment),
        several_hosts=False,
        host=environment.text("OFIPY_JOB_HOST"),
        names=_NAMES,
    )
    return found(NAME, meeting, environment, key=key)


def _read_key(environment: Environment) -> bytes:
    descriptor = environment.number("OFIPY_JOB_KEY_FD")
    try:
        key = os.pread(descriptor, _KEY_MAX, 0)
        os.set_inheritable(descriptor, False)  # a program that this one starts is another process of no job
    except OSError as error:
        raise environment.wrong(f"OFIPY_JOB_KEY_FD={descriptor} is not open: {error.strerror}") from None
    if not key:
        raise environment.wrong(f"OFIPY_JOB_KEY_FD={descriptor} holds no key")
    return key
