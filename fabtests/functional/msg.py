# SPDX-License-Identifier: BSD-3-Clause
"""One message between connected endpoints, and the end of the connection."""

from fabtests.base.greeting import greet
from fabtests.base.program import Program
from fabtests.base.session import Session


def run(session: Session) -> None:
    """Greet and hang up."""
    greet(session)
    session.endpoint.shutdown()


PROGRAM = Program(summary="One message between connected endpoints.", run=run, ep_type="msg", end=False)
