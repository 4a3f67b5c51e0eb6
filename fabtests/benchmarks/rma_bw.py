# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidth of reads and writes of remote memory."""

from fabtests.base.memory import Memory
from fabtests.base.program import Program
from fabtests.base.remote_timing import OPERATION, bandwidth
from fabtests.base.session import Session
from fabtests.base.timing import every_size


def run(session: Session) -> None:
    """Every size."""
    memory = Memory(session)
    every_size(session, lambda session, size: bandwidth(session, memory, size))


PROGRAM = Program(
    summary="Bandwidth of reads and writes of remote memory.",
    run=run,
    caps="msg|rma",
    size=None,
    iterations=None,
    options=(OPERATION,),
)
