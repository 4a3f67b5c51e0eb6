# SPDX-License-Identifier: BSD-3-Clause
"""A write that starts when a counter says that another one has finished."""

import numpy as np

from fabtests.base.greeting import expect_text, text
from fabtests.base.memory import Memory
from fabtests.base.program import Program
from fabtests.base.session import Session
from ofipy import Op

FIRST, SECOND = "Hello1 from Client!", "Hello2 from Client!"


def run(session: Session) -> None:
    """The client writes twice, the second text over the first."""
    memory = Memory(session)
    session.sync()
    if not session.client:
        session.access_counter.wait(2, timeout=session.limit)
        expect_text(session, memory.rx[: len(SECOND) + 1], SECOND)
        return
    texts = [text(FIRST), text(SECOND)]
    memory.tx[: texts[0].size] = texts[0]
    memory.tx[texts[0].size : texts[0].size + texts[1].size] = texts[1]
    writes = [
        write(session, memory, 0, texts[0].size),
        write(session, memory, texts[0].size, texts[1].size),
    ]
    before = session.write_counter.value
    session.endpoint.post(writes[1], after=(session.write_counter, before + 1))
    session.endpoint.post(writes[0])
    session.write_counter.wait(before + 2, session.limit)
    session.passed("Received completion events for RMA write operations")


def write(
    session: Session, memory: Memory, offset: int, size: int
) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
    """The record of a write to the start of the peer's memory."""
    record = session.domain.operations(1)
    record["op"], record["peer"] = Op.WRITE, int(session.peer)
    region, begin = memory.outgoing(offset)
    record["region"], record["offset"], record["length"] = region.id, begin, size
    record["remote_key"], record["remote_offset"] = memory.remote.key, memory.remote.offset
    return record


PROGRAM = Program(
    summary="A write that starts when another write has ended.",
    run=run,
    caps="msg|rma|rma_event|trigger",
    out_of_band="sync",
    remote_events=True,
)
