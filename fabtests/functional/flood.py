# SPDX-License-Identifier: BSD-3-Clause
"""A window of messages before the receiver looks; then one at a time with memory registered for each."""

import time

import rich_click as click

from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session


def receive(session: Session, count: int) -> None:
    """Post `count` receives and take them all."""
    for _ in range(count):
        session.post(session.buffer(session.room))
    for _ in range(count):
        data = session.take()
        if session.options.verify:
            session.expect(data.size == session.size, f"{data.size} bytes where {session.size} were sent")
            check(data)


def meet(session: Session) -> None:
    """Wait for each other, with a message of one byte unless the TCP connection does it."""
    if session.out_of_band_sync:
        session.sync()
        return
    session.post()
    if session.client:
        session.send(session.buffer(1))
        session.take()
    else:
        session.take()
        session.send(session.buffer(1))


def run(session: Session) -> None:
    """A flood, then a sequence."""
    window, outgoing = session.options.window, pattern(session.size).copy()
    if session.client:
        requests = [session.start_send(outgoing) for _ in range(window)]
        for request in requests:
            session.wait(request)
    else:
        time.sleep(session.options.extra["sleep"])
        receive(session, window)
    meet(session)
    session.passed("a window at once")
    for _ in range(window):
        if session.client:
            region = session.endpoint.register(outgoing)
            session.send(outgoing)
            region.close()
        else:
            receive(session, 1)
    meet(session)
    session.passed("one after the other, registered for each")


PROGRAM = Program(
    summary="A flood of unexpected messages.",
    run=run,
    late_receives=True,
    end=False,
    options=(
        click.option(
            "-T",
            "sleep",
            type=click.FloatRange(min=0),
            default=0,
            metavar="SECONDS",
            help="Delay of the server.",
        ),
    ),
)
