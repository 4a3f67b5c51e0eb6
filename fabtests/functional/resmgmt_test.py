# SPDX-License-Identifier: BSD-3-Clause
"""More operations than the queues hold."""

import time

import rich_click as click

from fabtests.base.program import Program
from fabtests.base.session import Session


def run(session: Session) -> None:
    """The client sends as many messages as the server receives, into endpoints whose queues are smaller."""
    count, delay = session.options.extra["most"], session.options.extra["delay"]
    size = session.size
    if session.client:
        requests = [session.start_send(session.buffer(size)) for _ in range(count)]
        for request in requests:
            session.wait(request)
    else:
        for _ in range(count):
            session.post(session.buffer(session.room))
        if delay:
            time.sleep(1)
        for _ in range(count):
            session.take()
    session.passed("Completed overflow testing")
    session.sync()


PROGRAM = Program(
    summary="More operations than the queues can contain.",
    run=run,
    options=(
        click.option(
            "-m", "most", type=click.IntRange(min=1), default=100, show_default=True, help="Operations."
        ),
        click.option("-d", "delay", is_flag=True, help="Delay the server."),
    ),
)
