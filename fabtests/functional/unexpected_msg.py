# SPDX-License-Identifier: BSD-3-Clause
"""Messages that come before their receives, which are posted in the opposite order."""

import numpy as np
import rich_click as click

from fabtests.base.meeting import swap_names
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session

TAG = 0x1234


def meet(session: Session) -> None:
    """Exchange addresses, with the client's first two messages there before the server knows it."""
    name = swap_names(session, session.endpoint)
    if session.client:
        session.peer = session.endpoint.insert(name)
        own = np.frombuffer(session.endpoint.address.raw(session.endpoint.provider), np.uint8)
        requests = [session.start_send(own) for _ in range(2)]
        session.sync()
        for request in requests:
            session.wait(request)
        session.post()
        session.take()
        return
    session.sync()
    session.post()
    session.take()
    session.peer = session.endpoint.insert(name)
    session.post()
    session.take()
    session.send(session.buffer(1))


def round_of(session: Session, count: int) -> None:
    """`count` messages each way, received in the opposite order."""
    size, data = session.size, session.size if session.options.extra["send_data"] else None
    outgoing = pattern(size)
    requests = [session.start_send(outgoing, tag=TAG + index, remote_data=data) for index in range(count)]
    session.sync()
    for index in reversed(range(count)):
        room = session.buffer(session.room)
        session.post(room, tag=TAG + index)
        request, _ = session.posted()
        message = session.wait(request)
        if data is not None:
            session.expect(
                message.remote_data == data, f"remote CQ data {message.remote_data} where {data} was sent"
            )
        if session.options.verify:
            session.expect(message.length == size, f"{message.length} bytes where {size} were sent")
            check(room[:size])
    for request in requests:
        session.wait(request)


def run(session: Session) -> None:
    """All rounds."""
    if session.options.ep_type != "msg":
        meet(session)
    else:
        session.endpoint = session.connect() if session.client else session.accept()
    for _ in range(session.options.iterations or 600):
        round_of(session, session.options.extra["concurrent"])
    session.sync()
    session.passed("all done")


PROGRAM = Program(
    summary="Messages that arrive before their receives.",
    run=run,
    caps="tagged",
    tagged=True,
    out_of_band="sync+address",
    meet=False,
    post=False,
    end=False,
    size=128,
    iterations=600,
    options=(
        click.option(
            "-M",
            "concurrent",
            type=click.IntRange(min=1),
            default=4,
            show_default=True,
            help="Messages in flight.",
        ),
        click.option("-C", "send_data", is_flag=True, help="With remote CQ data."),
    ),
)
