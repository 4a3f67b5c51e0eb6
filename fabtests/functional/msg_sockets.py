# SPDX-License-Identifier: BSD-3-Clause
"""A passive endpoint that becomes an active one, and keeps its address."""

from fabtests.base.greeting import greet
from fabtests.base.program import Program
from fabtests.base.session import Session
from ofipy import Endpoint


def connect(session: Session) -> Endpoint:
    """Client: open a listener, and connect as the endpoint at its address."""
    listener = session.domain.passive_endpoint()
    address = listener.address
    endpoint = session.keep(listener.connect(session.server_address(), **session.endpoint_options()))
    session.expect(endpoint.address == address, f"{endpoint.address} where the listener was at {address}")
    session.passed(f"connects from {address}")
    return endpoint


def run(session: Session) -> None:
    """Greet over a connection whose client was a listener, and hang up."""
    session.endpoint = connect(session) if session.client else session.accept()
    session.post()
    greet(session)
    session.endpoint.shutdown()


PROGRAM = Program(
    summary="A passive endpoint that becomes an active one.",
    run=run,
    ep_type="msg",
    meet=False,
    end=False,
)
