# SPDX-License-Identifier: BSD-3-Clause
"""A write that the target hears of by a counter."""

from fabtests.base.greeting import GREETING, expect_text, text
from fabtests.base.memory import Memory
from fabtests.base.program import Program
from fabtests.base.session import Session


def run(session: Session) -> None:
    """The client writes, the server waits for its counter of accesses."""
    memory = Memory(session)
    words = text(GREETING)
    if session.client:
        memory.tx[: words.size] = words
        session.wait(memory.write(0, words.size))
        session.passed("Received a completion event for RMA write")
    else:
        session.access_counter.wait(1, timeout=session.limit)
        expect_text(session, memory.rx[: words.size], GREETING)


PROGRAM = Program(
    summary="A write that the target's counter counts.",
    run=run,
    caps="msg|rma|rma_event",
    remote_events=True,
)
