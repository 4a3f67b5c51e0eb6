# SPDX-License-Identifier: BSD-3-Clause
"""Writes from every one of several domains to every one of the peer's."""

import rich_click as click

import ofipy
from fabtests.base.memory import pack_key, unpack_key
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session


class Place:
    """One domain: an endpoint, and memory that counts what is written to it."""

    def __init__(self, session: Session) -> None:
        self.endpoint: ofipy.Endpoint = session.another()
        self.memory = session.buffer(session.size)
        self.counter = self.endpoint.domain.counter()
        self.region = self.endpoint.register(
            self.memory, access=ofipy.Access.REMOTE_WRITE, counters={"remote_write": self.counter}
        )


def swap(session: Session, message: bytes) -> bytes:
    """One control message each way."""
    session.send(message)
    answer = session.take().tobytes()
    session.post()
    return answer


def run(session: Session) -> None:
    """Everybody writes to everybody."""
    session.require("rma_event")
    count, limit = session.options.extra["domains"], session.limit
    places = [Place(session) for _ in range(count)]
    names = [swap(session, bytes(place.endpoint.address)) for place in places]
    remotes = [unpack_key(swap(session, pack_key(place.region)), session.size) for place in places]
    outgoing = pattern(session.size).copy()
    for place in places:
        peers = [place.endpoint.insert(name) for name in names]
        requests = [
            place.endpoint.write(outgoing, peer, remote) for peer, remote in zip(peers, remotes, strict=True)
        ]
        ofipy.wait_all(requests, timeout=limit)
    for place in places:
        place.counter.wait(count, limit)
        check(place.memory, "write")
    session.passed("multi domain test complete")


PROGRAM = Program(
    summary="Writes between several domains.",
    run=run,
    caps="msg|rma|rma_event",
    size=4096,
    options=(
        click.option(
            "-c", "domains", type=click.IntRange(min=1), default=2, show_default=True, help="Domains."
        ),
        click.option("-V", "verbose", is_flag=True, help="No effect: failures are always printed."),
    ),
)
