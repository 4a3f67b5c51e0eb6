# SPDX-License-Identifier: BSD-3-Clause
"""A server that stays, and clients that come one after the other (``-C``)."""

import rich_click as click

from fabtests.base.program import Program
from fabtests.base.session import Session


def play(session: Session) -> None:
    """Ping-pong."""
    outgoing = session.buffer(session.size)
    for _ in range(session.options.count(session.size)):
        if session.client:
            session.send(outgoing)
        session.receive()
        if not session.client:
            session.send(outgoing)


def run(session: Session) -> None:
    """The server serves as many clients as the client plays."""
    for number in range(session.options.connections):
        if number and session.client:
            session.reopen(ready=False)
        elif number:
            session.next_client(reconnects=False)
        play(session)
        session.passed(f"client {number}")


PROGRAM = Program(
    summary="One server, clients one after the other.",
    run=run,
    end=False,
    options=(
        click.option("-R", "reuse", is_flag=True, help="Each client reuses the address of the one before."),
    ),
)
