# SPDX-License-Identifier: BSD-3-Clause
"""A receive that is taken back before its message is sent, and posted again after it."""

import rich_click as click

import ofipy
from fabtests.base.program import Program
from fabtests.base.session import Session

CANCEL, STANDARD = 0xC, 0xA


def client(session: Session) -> None:
    """Send both messages when the server has cancelled."""
    session.take()
    requests = [session.start_send(session.buffer(session.size), tag=tag) for tag in (STANDARD, CANCEL)]
    for request in requests:
        session.wait(request)


def server(session: Session) -> None:
    """Cancel one of two receives."""
    endpoint, rooms = session.endpoint, [session.buffer(session.room) for _ in range(2)]
    cancelled = endpoint.trecv_into(rooms[0], tag=CANCEL)
    standard = endpoint.trecv_into(rooms[1], tag=STANDARD)
    session.expect(cancelled.cancel(), "a receive that nothing matches could not be cancelled")
    try:
        cancelled.wait(timeout=session.limit)
    except ofipy.Canceled:
        session.passed("the cancelled receive says so")
    else:
        session.expect(False, "the cancelled receive ended well")
    session.send(session.buffer(1))
    standard.wait(timeout=session.limit)
    session.passed("Completed uncancelled recv")
    endpoint.trecv_into(rooms[0], tag=CANCEL).wait(timeout=session.limit)
    session.passed("Completed reposted cancelled recv")


def run(session: Session) -> None:
    """One side."""
    (client if session.client else server)(session)


PROGRAM = Program(
    summary="Cancels a posted receive.",
    run=run,
    caps="tagged",
    tagged=True,
    end=False,
    options=(click.option("-V", "verbose", is_flag=True, help="No effect: every step is printed."),),
)
