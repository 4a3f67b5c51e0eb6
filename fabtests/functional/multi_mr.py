# SPDX-License-Identifier: BSD-3-Clause
"""Writes to several regions, each with a counter that tells of them."""

import rich_click as click

import ofipy
from fabtests.base.memory import pack_key, unpack_key
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session


class Target:
    """A region of ours with its counter, and the one of the same number of the peer."""

    def __init__(self, session: Session, key: int) -> None:
        self.session = session
        self.memory = session.buffer(session.size)
        self.outgoing = pattern(session.size).copy()
        self.counter = session.domain.counter()
        self.region = session.endpoint.register(
            self.memory, access=ofipy.Access.REMOTE_WRITE, key=key, counters={"remote_write": self.counter}
        )

    def meet(self) -> None:
        """Exchange keys."""
        session = self.session
        session.send(pack_key(self.region))
        self.remote = unpack_key(session.take().tobytes(), session.size)
        session.post()

    def write(self) -> None:
        """Fill the peer's."""
        session = self.session
        session.wait(session.endpoint.write(self.outgoing, session.peer, self.remote))

    def await_write(self) -> None:
        """Wait until ours was filled."""
        self.counter.wait(1, self.session.limit)
        check(self.memory, "write")


def run(session: Session) -> None:
    """The client writes to each region, and the server back."""
    session.require("rma_event")
    targets = [Target(session, number + 1) for number in range(session.options.extra["regions"])]
    for target in targets:
        target.meet()
    for target in targets:
        if session.client:
            target.write()
        target.await_write()
        if not session.client:
            target.write()
    session.passed("multi mr key test complete")
    session.sync()


PROGRAM = Program(
    summary="Writes to several regions, counted by counters.",
    run=run,
    caps="msg|rma|rma_event",
    size=4096,
    options=(
        click.option(
            "-c", "regions", type=click.IntRange(min=1), default=2, show_default=True, help="Regions."
        ),
        click.option("-V", "verbose", is_flag=True, help="No effect: failures are always printed."),
    ),
)
