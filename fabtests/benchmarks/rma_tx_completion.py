# SPDX-License-Identifier: BSD-3-Clause
"""Time until writes to remote memory have finished."""

from fabtests.base.memory import Memory
from fabtests.base.program import Program
from fabtests.base.remote_timing import OPERATION, completion
from fabtests.base.session import Session
from fabtests.base.timing import every_size


def run(session: Session) -> None:
    """Every size."""
    memory = Memory(session, places=1)
    every_size(session, lambda session, size: completion(session, memory, size))


PROGRAM = Program(
    summary="Time until writes to remote memory have finished.",
    run=run,
    caps="msg|rma",
    size=None,
    iterations=None,
    options=(OPERATION,),
)
