# SPDX-License-Identifier: BSD-3-Clause
"""Messages are looked at, claimed and discarded before they are received; the server sends, the client looks."""

import time

import ofipy
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session

BASE, COUNT = 0x900D, 10
_CLAIM = "peek|claim"


class Looker:
    """The client."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._memory = session.buffer(session.room)
        self._region = session.endpoint.register(self._memory)

    def peek(self, number: int, flags: str, *, patient: bool) -> bool:
        """Look for a message, for a while if it has to come; whether it is there."""
        session = self._session
        end = time.monotonic() + session.limit
        while True:
            error = self._post(number, flags)
            if error is None or not isinstance(error, ofipy.NoMessage):
                session.expect(error is None, f"{flags}: {error}")
                return True
            if not patient:
                return False
            session.expect(
                time.monotonic() < end, f"message {number} did not come within {session.limit:g} s"
            )

    def receive(self, number: int, flags: str = "") -> None:
        """Receive a message and check it."""
        session = self._session
        if "claim" in flags:
            error = self._post(number, flags)
            session.expect(error is None, f"{flags}: {error}")
            if "discard" in flags:
                return
        else:
            session.endpoint.trecv_into(self._memory, tag=BASE + number).wait(timeout=session.limit)
        check(self._memory)

    def _post(self, number: int, flags: str) -> ofipy.FabricError | None:
        endpoint = self._session.endpoint
        endpoint.post_trecv(self._region, tag=BASE + number, flags=flags, context=1)
        (row,) = endpoint.cq.wait(self._session.limit, max=1)
        return endpoint.cq.exception(row)


def look(session: Session) -> None:
    """Every way to a message."""
    looker = Looker(session)
    for flags in ("peek", _CLAIM):
        session.expect(not looker.peek(0xBAD, flags, patient=False), f"{flags} found what nobody sent")
    looker.peek(1, "peek", patient=True)
    looker.receive(1)
    looker.peek(2, _CLAIM, patient=True)
    looker.receive(2, "claim")
    looker.peek(3, "peek|discard", patient=True)
    session.expect(not looker.peek(3, "peek", patient=False), "a discarded message is still there")
    looker.peek(4, _CLAIM, patient=True)
    looker.receive(4, "claim|discard")
    for number in (5, 6, *range(COUNT, 6, -1)):
        looker.receive(number)
    session.passed("peeked, claimed, discarded and received")


def run(session: Session) -> None:
    """The server sends, the client looks."""
    if session.client:
        look(session)
    else:
        outgoing = pattern(session.room)
        requests = [session.start_send(outgoing, tag=BASE + number) for number in range(1, COUNT + 1)]
        for request in requests:
            session.wait(request)
    session.sync()


PROGRAM = Program(
    summary="Peeks at, claims and discards messages.",
    run=run,
    caps="tagged",
    tagged=True,
    out_of_band="sync",
    size=64,
    end=False,
)
