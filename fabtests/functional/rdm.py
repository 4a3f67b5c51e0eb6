# SPDX-License-Identifier: BSD-3-Clause
"""One message between unconnected endpoints; with ``-C`` from several clients, one after the other."""

from fabtests.base.greeting import greet
from fabtests.base.program import Program
from fabtests.base.session import Session


def run(session: Session) -> None:
    """Greet, or be greeted by every client."""
    greet(session)
    if not session.client:
        for _ in range(session.options.connections - 1):
            session.post()
            session.next_client()
            greet(session)


PROGRAM = Program(summary="One message between unconnected endpoints.", run=run, end=False)
