# SPDX-License-Identifier: BSD-3-Clause
"""Messages while addresses are removed and entered again."""

from fabtests.base.program import Program
from fabtests.base.session import Session


def send_or_receive(session: Session, *, sends: bool) -> None:
    """One message."""
    if sends:
        session.send(session.buffer(session.size))
    else:
        session.receive()


def forget(session: Session) -> None:
    """Remove the peer, and meet it again."""
    session.endpoint.av.remove(session.peer)
    session.sync()
    session.meet()


def run(session: Session) -> None:
    """After the peer was removed and entered again messages go the other way, then in a new endpoint the same way."""
    send_or_receive(session, sends=session.client)
    forget(session)
    send_or_receive(session, sends=not session.client)
    session.sync()
    session.passed("AV address removal")
    session.reopen()
    send_or_receive(session, sends=session.client)
    forget(session)
    send_or_receive(session, sends=session.client)
    session.sync()
    session.passed("AV re-insertion of an address")


PROGRAM = Program(
    summary="Messages while addresses are inserted and removed.",
    run=run,
    out_of_band="sync+address",
    end=False,
)
