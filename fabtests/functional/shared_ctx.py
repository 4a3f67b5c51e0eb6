# SPDX-License-Identifier: BSD-3-Clause
"""Several endpoints that receive through one context."""

from typing import Any

import numpy as np
import rich_click as click

import ofipy
from fabtests.base.out_of_band import unpack_name
from fabtests.base.program import Program
from fabtests.base.session import Session


class Several:
    """Endpoints on one queue, with one place where messages come, or one each."""

    def __init__(self, session: Session, count: int, *, shared: bool) -> None:
        self.session = session
        domain, connected = session.domain, session.options.ep_type == "msg"
        queue = domain.cq()
        vector = None if connected else domain.av()
        self.context = domain.receive_context(cq=queue, av=vector) if shared else None
        common: dict[str, Any] = {"rx": self.context} if self.context is not None else {"cq": queue}
        if not connected and self.context is None:
            common["av"] = vector
        self.endpoints: list[ofipy.Endpoint] = []
        for number in range(count):
            if connected:
                self.endpoints.append(
                    session.connect(**common) if session.client else session.accept(**common)
                )
            else:
                service = session.service if number == 0 else None
                self.endpoints.append(session.make_endpoint(service=service, **common))
        session.endpoint = self.endpoints[0]
        self.peers: list[ofipy.Peer] = [each.peer for each in self.endpoints] if connected else []

    def receive(self, number: int) -> ofipy.Request:
        """Post a receive for endpoint `number`, or for all of them."""
        where = self.endpoints[number] if self.context is None else self.context
        self.room = self.session.buffer(self.session.room)
        return where.recv_into(self.room)

    def send(self, number: int, message: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> None:
        """Send from endpoint `number` to the peer's."""
        self.endpoints[number].send(message, self.peers[number]).wait(timeout=self.session.limit)

    def name(self, number: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        """The name of endpoint `number`."""
        endpoint = self.endpoints[number]
        return np.frombuffer(endpoint.address.raw(endpoint.provider), np.uint8)

    def tell(self, message: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> None:
        """Send between the first endpoints."""
        self.endpoints[0].send(message, self.peers[0]).wait(timeout=self.session.limit)


def meet(several: Several) -> ofipy.Request:
    """Exchange the names of all endpoints, one by one, over the first one; the receive that is posted at the end."""
    session, first = several.session, several.endpoints[0]
    receive = several.receive(0)
    room = several.room
    if session.client:
        several.peers.append(first.insert(session.server_address()))
    else:
        session.announce()
    for number in range(len(several.endpoints)):
        if session.client:
            several.tell(several.name(number))
        message = room[: receive.wait(timeout=session.limit).length].tobytes()
        receive = several.receive(0)
        room = several.room
        if number or not session.client:
            several.peers.append(first.insert(unpack_name(first, message)))
        if not session.client:
            several.tell(several.name(number))
    if session.client:
        several.tell(session.buffer(1))
        return receive
    receive.wait(timeout=session.limit)
    return several.receive(0)


def run(session: Session) -> None:
    """One message over each endpoint, there and back."""
    extra = session.options.extra
    several = Several(session, extra["endpoints"], shared=not extra["no_rx"])
    first = several.receive(0) if session.options.ep_type == "msg" else meet(several)
    count = len(several.endpoints)
    # libfabric's programs have no buffers here where endpoints are connected, and post receives at no address.
    message = session.buffer(0 if session.options.ep_type == "msg" else session.room)
    # Both sides post exactly as many receives as messages come: the other side leaves after its last message, and a
    # receive that is still posted then fails.
    receives = [first, *(several.receive(number) for number in range(1, count))]

    def send_all() -> None:
        for number in range(count):
            several.send(number, message)

    if session.client:
        send_all()
    for receive in receives:
        receive.wait(timeout=session.limit)
    if not session.client:
        send_all()
    session.passed(f"{count} endpoints")


PROGRAM = Program(
    summary="Endpoints that receive through one context.",
    run=run,
    caps="msg|shared_context",
    meet=False,
    open=False,
    post=False,
    end=False,
    options=(
        click.option(
            "--no-tx-shared-ctx",
            "no_tx",
            is_flag=True,
            help="No effect: endpoints of a domain share their queue.",
        ),
        click.option(
            "--no-rx-shared-ctx",
            "no_rx",
            is_flag=True,
            help="Receive by each endpoint instead of a shared context.",
        ),
        click.option(
            "--ep-count",
            "endpoints",
            type=click.IntRange(min=1),
            default=4,
            show_default=True,
            help="Endpoints.",
        ),
    ),
)
