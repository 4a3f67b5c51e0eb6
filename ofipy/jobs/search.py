# SPDX-License-Identifier: BSD-3-Clause
"""How a process finds the server of its job: it greets several ports, and takes the server that knows the job.

A send to a port where nobody listens waits until somebody does, so the ports are greeted side by side: one after the
other would spend a time-out on each port without a server. A port is greeted a little later than the one before it, so
that a job whose server is at the first port does not touch the others.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ofipy._base.errors import FabricError, IncompatiblePeer, TimedOut
from ofipy._completion.request import Request
from ofipy._completion.together import wait_any
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain
from ofipy.jobs.door import Knocker, describe
from ofipy.jobs.greeting import ANSWER_TAG, ASK_TAG, Foreign, Message, Run, Why, refusal_of
from ofipy.jobs.launcher import Deadline

__all__ = ["Search"]

_NEXT_PORT_SECONDS = 0.05  # a server on the other side of a slow network has answered by then
_PAUSES = (0.02, 0.5)  # before a port is greeted again; the first one, and the longest


class _Port:
    """One port of the server's host: the greeting under way, or the time of the next one."""

    def __init__(self, host: str, number: int, due: float) -> None:
        self.number = number
        self.address = f"{host}:{number}"
        self.due = due  # for the next greeting, where none is under way
        self.peer: Peer | None = None
        self.sent: Request | None = None
        self.answer: Request[Any] | None = None
        self.error: FabricError | None = None  # of the last greeting
        self.foreign: IncompatiblePeer | None = None  # of the last greeting that ended so
        self._pause = _PAUSES[0]

    def greet(self, endpoint: Endpoint[Domain], greeting: bytes) -> None:
        try:
            self.peer = endpoint.insert(self.address)
            self.answer = endpoint.trecv(self.peer, tag=ANSWER_TAG)
            # Delivered: so an error of the connection comes up here, and not only when the time is over.
            self.sent = endpoint.tsend(greeting, self.peer, tag=ASK_TAG, complete="delivery")
        except FabricError as error:
            self.error = error
            self.greet_later()

    def greet_later(self) -> None:
        """Drop the greeting that is under way; another one follows after a pause."""
        if self.answer is not None:
            self.answer.cancel()
        self.sent = self.answer = None
        self.due = time.monotonic() + self._pause
        self._pause = min(self._pause * 1.5, _PAUSES[1])

    def requests(self) -> list[Request[Any]]:
        """What its greeting waits for; the answer first, since it tells more."""
        waiting = [] if self.answer is None else [self.answer]
        # A greeting that was delivered has nothing more to say.
        if self.sent is not None and not (self.sent.done and self.sent.exception() is None):
            waiting.append(self.sent)
        return waiting


class Search:
    """A search for the server of a run at several ports of a host.

    Parameters
    ----------
    endpoint : Endpoint
        What greets.
    run : Run
        The job that is looked for.
    host : str
        Where the server is.
    ports : sequence of int
        Where it may listen.
    knocker : Knocker
        Knocks at the doors.
    rank : int
        Of this process.
    """

    def __init__(
        self,
        endpoint: Endpoint[Domain],
        run: Run,
        host: str,
        ports: Sequence[int],
        *,
        knocker: Knocker,
        rank: int,
    ) -> None:
        self._endpoint = endpoint
        self._run = run
        self._knocker = knocker
        self._rank = rank
        now = time.monotonic()
        self._ports = [
            _Port(host, port, now + place * _NEXT_PORT_SECONDS) for place, port in enumerate(ports)
        ]

    def server(
        self, greeting: bytes, nonce: bytes, deadline: Deadline
    ) -> tuple[Peer, Message | Foreign | Why | IncompatiblePeer] | None:
        """Greet until a server of the run answers.

        Parameters
        ----------
        greeting : bytes
            The message.
        nonce : bytes
            What an answer to it repeats.
        deadline : Deadline
            When to give up.

        Returns
        -------
        tuple of Peer and (Message, Foreign, Why or IncompatiblePeer), or None
            The server and what it answered, a refusal too, or why its endpoint cannot; None: there was no answer in
            time.
        """
        try:
            while not deadline.passed():
                now = time.monotonic()
                for port in self._ports:
                    if port.answer is None and port.due <= now:
                        port.greet(self._endpoint, greeting)
                self._wait(deadline)
                for port in self._ports:
                    answer = self._answer_of(port, nonce)
                    if answer is not None and port.peer is not None:
                        return self._keep(port.peer), answer
                refused = self._refused_at(self._knocker.heard_at())
                if refused is not None:
                    return refused
            return None
        finally:
            for port in self._ports:
                port.greet_later()

    def errors(self) -> list[FabricError]:
        """Of the ports whose last greeting failed, in their order."""
        return [port.error for port in self._ports if port.error is not None]

    def _wait(self, deadline: Deadline) -> None:
        """Until a greeting has news, or another one is due."""
        due = [port.due for port in self._ports if port.answer is None]
        seconds = max(min([deadline.end, *due]) - time.monotonic(), 0.0)
        waiting = [request for port in self._ports for request in port.requests()]
        if not waiting:
            time.sleep(seconds)
            return
        with suppress(TimedOut):
            wait_any(waiting, timeout=seconds)

    def _answer_of(self, port: _Port, nonce: bytes) -> Message | Foreign | Why | None:
        """What a server of the run answered at this port; None: nothing yet, or it serves another run."""
        finished = next((request for request in port.requests() if request.done), None)
        if finished is None or port.answer is None:
            return None
        port.error = finished.exception()
        if isinstance(port.error, IncompatiblePeer):
            port.foreign = port.error
            self._knocker.knock(port.number, describe(port.error, self._rank))
        if port.error is not None:
            port.greet_later()
            return None
        blob = bytes(port.answer.wait().data)
        answer = self._run.read(blob)
        if not isinstance(answer, Message | Foreign):
            answer = refusal_of(blob)
        elif isinstance(answer, Message) and answer.nonce != nonce:
            answer = None
        if answer is None or answer is Why.RUN:
            port.greet_later()
            return None
        return answer

    def _refused_at(self, number: int | None) -> tuple[Peer, IncompatiblePeer] | None:
        """The server whose door has heard this process."""
        for port in self._ports:
            if port.number == number and port.peer is not None and port.foreign is not None:
                return self._keep(port.peer), port.foreign
        return None

    def _keep(self, server: Peer) -> Peer:
        """Forget the peers at the other ports, and what is under way to them."""
        for port in self._ports:
            if port.peer is not None and port.peer != server:
                self._endpoint.av.remove(port.peer)
                port.sent = port.answer = None
        return server
