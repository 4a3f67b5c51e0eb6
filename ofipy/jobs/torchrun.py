# SPDX-License-Identifier: BSD-3-Clause
"""torchrun's variables, which Kubernetes' training operators set too. torch itself is not needed.

MASTER_PORT is torchrun's own store's, so rank 0 serves at the next one.
"""

import os
import socket

from ofipy.jobs.launcher import Environment, Found
from ofipy.jobs.rendezvous import Meeting, found, ports

__all__ = ["NAME", "find"]

NAME = "torchrun"

_NAMES = ("RANK", "WORLD_SIZE")


def variables() -> Environment:
    """Those that say that it is this."""
    return Environment(
        NAME,
        ("RANK", "WORLD_SIZE", "MASTER_ADDR"),
        "start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or unset them all",
    )


def find() -> Found | None:
    """The launcher, None when nothing of it is set.

    Raises
    ------
    ConfigError
        When its variables are half set, or there are several hosts and no key.
    """
    environment = variables()
    if not environment.is_set():
        return None
    rank, size = environment.rank_and_size(("RANK",), ("WORLD_SIZE",))
    server = environment.text("MASTER_ADDR")
    after = environment.number("MASTER_PORT", least=1) if environment.optional("MASTER_PORT") else None
    local = (
        environment.number("LOCAL_WORLD_SIZE", least=1) if environment.optional("LOCAL_WORLD_SIZE") else None
    )
    run = environment.optional("TORCHELASTIC_RUN_ID") or f"{server}:{after}"
    meeting = Meeting(
        run=f"{NAME} {run} {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}",
        rank=rank,
        size=size,
        server=server,
        ports=ports(None if after is None else after + 1, environment),
        several_hosts=local is not None and local < size,
        host=socket.gethostname(),
        names=_NAMES,
    )
    return found(NAME, meeting, environment)
