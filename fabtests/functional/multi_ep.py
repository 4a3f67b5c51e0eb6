# SPDX-License-Identifier: BSD-3-Clause
"""Messages and writes over several endpoints, with queues and address vectors of their own or shared."""

from typing import Any

import rich_click as click

import ofipy
from fabtests.base.meeting import swap_names
from fabtests.base.memory import pack_key, unpack_key
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session


class Lane:
    """One endpoint and its peer."""

    def __init__(self, session: Session, shared: dict[str, Any]) -> None:
        self._session = session
        if session.options.ep_type != "msg":
            self.endpoint: ofipy.Endpoint = session.make_endpoint(**shared)
        else:
            queue = {name: each for name, each in shared.items() if name == "cq"}
            self.endpoint = session.connect(**queue) if session.client else session.accept(**queue)
            self.peer: ofipy.Peer = self.endpoint.peer
        self.incoming, self.outgoing = session.buffer(session.size), session.buffer(session.size)

    def meet(self) -> None:
        """Exchange addresses over the TCP connection."""
        if self._session.options.ep_type != "msg":
            self.peer = self.endpoint.insert(swap_names(self._session, self.endpoint))

    def post(self) -> None:
        """Post a receive."""
        self._receive = self.endpoint.recv_into(self.incoming)

    def send(self, size: int) -> None:
        """Send, and take what the peer sends."""
        self._sending = self.endpoint.send(self.outgoing[:size], self.peer)

    def finish(self) -> None:
        """Wait for both."""
        self._receive.wait(timeout=self._session.limit)
        self._sending.wait(timeout=self._session.limit)

    def tell(self) -> None:
        """Send the key of a new registration."""
        access = ofipy.Access.LOCAL | ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE
        self._region = self.endpoint.register(self.incoming, access=access)
        key = pack_key(self._region)
        self.outgoing[: len(key)] = memoryview(key)
        self.send(len(key))

    def learn(self) -> None:
        """Take the peer's key."""
        self.finish()
        self.remote = unpack_key(self.incoming[: self._receive.length].tobytes(), self._session.size)

    def write(self) -> ofipy.Request:
        """Fill the peer's memory."""
        self.outgoing[:] = pattern(self.outgoing.size)
        return self.endpoint.write(self.outgoing, self.peer, self.remote)

    def verify(self) -> None:
        """Look at what the peer wrote."""
        check(self.incoming, "write")
        self._region.close()


def sync(lanes: list[Lane]) -> None:
    """An empty message each way over every endpoint, for which a receive is posted."""
    for lane in lanes:
        lane.send(0)
        lane.finish()


def round_of(session: Session, lanes: list[Lane]) -> None:
    """Keys by message, then a write each way."""
    for lane in lanes:
        lane.post()
    for lane in lanes:
        lane.tell()
        lane.learn()
        lane.post()
    sync(lanes)
    session.passed("multi ep sends")
    # Before the writes: a peer that is ahead sends, and to libfabric's tcp a message that has no receive is in the way
    # of all that comes behind it, the answers to writes too.
    for lane in lanes:
        lane.post()
    for request in [lane.write() for lane in lanes]:
        request.wait(timeout=session.limit)
    sync(lanes)
    for lane in lanes:
        lane.verify()
    session.passed("multi ep writes")


def run(session: Session) -> None:
    """Two rounds, with new registrations in the second one."""
    extra = session.options.extra
    shared: dict[str, Any] = {}
    if extra["shared_cq"]:
        shared["cq"] = session.domain.cq()
    if extra["shared_av"] and session.options.ep_type != "msg":
        shared["av"] = session.domain.av()
    lanes = [Lane(session, shared) for _ in range(extra["endpoints"])]
    for lane in lanes:
        lane.meet()
    for _ in range(2):
        round_of(session, lanes)


PROGRAM = Program(
    summary="Messages and writes over several endpoints.",
    run=run,
    caps="msg|rma",
    out_of_band="address",
    size=256,
    delivery=True,
    options=(
        click.option(
            "-c", "endpoints", type=click.IntRange(min=1), default=3, show_default=True, help="Endpoints."
        ),
        click.option("-A", "shared_av", is_flag=True, help="One address vector for all."),
        click.option("-Q", "shared_cq", is_flag=True, help="One completion queue for all."),
    ),
)
