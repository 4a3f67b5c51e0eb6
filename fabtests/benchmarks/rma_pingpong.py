# SPDX-License-Identifier: BSD-3-Clause
"""Latency of writes to remote memory."""

from fabtests.base.memory import Memory
from fabtests.base.program import Program
from fabtests.base.remote_timing import OPERATION, no_verification, pingpong
from fabtests.base.session import Session
from fabtests.base.timing import every_size


def run(session: Session) -> None:
    """Every size."""
    memory = Memory(session, places=1)
    every_size(session, lambda session, size: pingpong(session, memory, size))


PROGRAM = Program(
    summary="Latency of writes to remote memory.",
    run=run,
    caps="msg|rma",
    size=None,
    iterations=None,
    options=(OPERATION,),
    check=no_verification,
)
