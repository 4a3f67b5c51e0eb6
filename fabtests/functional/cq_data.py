# SPDX-License-Identifier: BSD-3-Clause
"""Remote CQ data that comes with a message, or with a write."""

import rich_click as click

from fabtests.base.memory import Memory, cq_data
from fabtests.base.program import NotRun, Program
from fabtests.base.session import Session


def run(session: Session) -> None:
    """The client sends data, the server checks what its completion says."""
    info = session.endpoint.info
    size, data = session.size, cq_data(info)
    if not data:
        raise NotRun(f"capability remote CQ data: {info.provider} carries none")
    if session.options.extra["operation"] == "writedata":
        memory = Memory(session)
        if session.client:
            session.wait(memory.write(0, size, data=True))
        else:
            memory.take_data(1)
    elif session.client:
        session.send(session.buffer(size), remote_data=data)
    else:
        request, _ = session.posted()
        message = session.wait(request)
        session.expect(
            message.remote_data == data, f"remote CQ data {message.remote_data} where {data:#x} was sent"
        )
        session.expect(message.length == size, f"{message.length} bytes where {size} were sent")
    session.passed("remote CQ data")
    if session.options.ep_type == "msg":
        session.endpoint.shutdown()


PROGRAM = Program(
    summary="Remote CQ data of a message or a write.",
    run=run,
    size=1000,
    end=False,
    options=(
        click.option(
            "-o",
            "operation",
            type=click.Choice(["senddata", "writedata"]),
            default="senddata",
            show_default=True,
            help="Operation that carries the data.",
        ),
    ),
)
