# SPDX-License-Identifier: BSD-3-Clause
"""The descriptor of a completion queue under epoll."""

import select

import numpy as np

import ofipy
from fabtests.base.greeting import GREETING, expect_text, text
from fabtests.base.program import Program
from fabtests.base.session import Session


def run(session: Session) -> None:
    """Post one operation and sleep until the queue has its completion."""
    memory = np.zeros(session.room, np.uint8)
    region = session.endpoint.register(memory)
    if session.client:
        words = text(GREETING)
        memory[: words.size] = words
        session.endpoint.post_send(region[: words.size])
    else:
        session.endpoint.post_recv(region)
    row = sleep(session)
    if not session.client:
        expect_text(session, memory[: int(row["length"])], GREETING)
    session.endpoint.shutdown()


def sleep(session: Session) -> np.void:
    """The next completion."""
    queue = session.endpoint.cq
    with select.epoll() as poll:
        poll.register(queue.fileno(), select.EPOLLIN)
        while not len(rows := queue.read(1)):
            if queue.arm():
                session.expect(bool(poll.poll(session.limit)), f"no completion within {session.limit:g} s")
    error = queue.exception(rows[0])
    if error is not None:
        raise error
    session.expect(
        bool(rows[0]["flags"] & (ofipy.Completed.SEND | ofipy.Completed.RECV)),
        "a completion of something else",
    )
    row: np.void = rows[0]
    return row


PROGRAM = Program(
    summary="A completion queue's descriptor under epoll.", run=run, ep_type="msg", post=False, end=False
)
