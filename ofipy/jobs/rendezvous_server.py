# SPDX-License-Identifier: BSD-3-Clause
"""The side of the rendezvous that serves, at rank 0, in a thread of its own for as long as the job lasts.

It keeps one record for each rank of the job and nothing of anybody else. Every greeting is answered at once; the
answers to a fence go out together, when all are here.
"""

import logging
import socket
import threading
from collections import deque
from typing import Any

from ofipy._base.errors import Canceled, Closed, FabricError, NotSent, TimedOut
from ofipy._base.linger import loop_runs_here, patience
from ofipy._completion.request import Request
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain
from ofipy.jobs.door import Door
from ofipy.jobs.greeting import (
    ANSWER_TAG,
    ASK_TAG,
    MESSAGE_MAX,
    PROTOCOL,
    VERSIONS,
    Foreign,
    Kind,
    Message,
    Run,
    Why,
    is_fence,
)
from ofipy.jobs.launcher import Deadline

__all__ = ["Server"]

_log = logging.getLogger("ofipy.job")

_ROOM_SECONDS = 0.05  # until an answer that found the transmit queue full is tried again


class Server:
    """Brings the processes of a run together.

    Parameters
    ----------
    endpoint : Endpoint
        At a known port; closed with this.
    run : Run
        Of whom it is.
    size : int
        Processes.
    deadline : Deadline
        When all must be here.
    door : socket, optional
        Where processes of other releases are heard; closed with this.
    """

    def __init__(
        self,
        endpoint: Endpoint[Domain],
        run: Run,
        size: int,
        deadline: Deadline,
        door: socket.socket | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._run = run
        self._size = size
        self._deadline = deadline
        self._members: dict[int, tuple[Peer, bytes]] = {}  # by rank, with the nonce of each
        self._fence = 0
        self._arrived: dict[int, dict[str, Any]] = {}  # in this fence, by rank
        self._over: tuple[Why, str] | None = None  # why nobody is let in any more
        self._answers: list[Request] = []
        self._unsent: deque[tuple[Peer, bytes]] = deque()  # answers that the transmit queue had no room for
        self._knocks: deque[str] = deque()  # what processes have said that cannot be in the job
        self._stopping = False
        self._room = bytearray(MESSAGE_MAX)
        self._receive = endpoint.trecv_into(self._room, tag=ASK_TAG)
        self._thread = threading.Thread(target=self._serve, name="ofipy-rendezvous", daemon=True)
        self._thread.start()
        self._door = Door(door, run, self._knocked) if door is not None else None

    def close(self) -> None:
        """End it, once all answers have left, for which there is ``OFIPY_LINGER``; an event loop is not held up."""
        self._stopping = True
        if self._door is not None:
            self._door.close()
            self._door = None
        while self._thread.is_alive():
            self._receive.cancel()  # which may have become another one just now
            self._thread.join(0.05)
        deadline = Deadline(0 if loop_runs_here() else patience(None))
        try:
            self._send_answers(deadline)
            self.endpoint.close(linger=deadline.left())
        except NotSent as error:
            _log.warning("rendezvous: %s", error)
        finally:
            self.endpoint.close(linger=0)

    def _knocked(self, said: str) -> None:
        """In the door's thread: have the server hear it, which may wait for a message."""
        self._knocks.append(said)
        while self._knocks and self._thread.is_alive():
            self._receive.cancel()  # which may have become another one just now
            self._thread.join(0.01)

    def _hear_knocks(self) -> None:
        while self._knocks:
            # Where all are here, it is none of them.
            if self._over is None and len(self._members) < self._size:
                self._end(Why.VERSION, self._knocks[0])
            self._knocks.popleft()

    def _serve(self) -> None:
        while not self._stopping:
            try:
                self._hear_knocks()
                self._send_answers(Deadline(0))
                if not self._wait():
                    continue
                source, blob = self._receive.source, bytes(self._room[: self._receive.length])
                self._receive = self.endpoint.trecv_into(self._room, tag=ASK_TAG)
                if source is not None:
                    self._hear(source, blob)
            except Canceled:
                if self._stopping:
                    return
                # Somebody has knocked.
                self._receive = self.endpoint.trecv_into(self._room, tag=ASK_TAG)
            except Closed:
                return
            except FabricError as error:  # of one process: a message too long, an answer that cannot be sent
                _log.info("rendezvous: %s", error)
                if self._receive.done:
                    self._receive = self.endpoint.trecv_into(self._room, tag=ASK_TAG)

    def _wait(self) -> bool:
        """Until a message has come; False: there is something else to do first."""
        missing = self._over is None and (len(self._members) < self._size or bool(self._arrived))
        try:
            if self._unsent:
                self._receive.wait(timeout=_ROOM_SECONDS)
            else:
                self._receive.wait(timeout=self._deadline.left() if missing else None)
        except TimedOut:
            if missing and self._deadline.passed():
                self._give_up()
            return False
        return True

    def _hear(self, source: Peer, blob: bytes) -> None:
        message = self._run.read(blob)
        if isinstance(message, Why):
            _log.info("rendezvous: refused %s: another %s", source.address, message)
            self._refuse(source, bytes(16), message, f"another {message}")
        elif isinstance(message, Foreign):
            self._heard_foreign(source, message)
        elif message is not None and message.kind is Kind.GREETING:
            self._greeted(source, message)
        elif message is not None and message.kind is Kind.FENCE:
            self._at_fence(source, message)

    def _greeted(self, source: Peer, message: Message) -> None:
        rank, size = _rank(message), message.body.get("size")
        why = None
        if size != self._size:
            why = Why.SIZE, f"it says that the job has {size} processes, and rank 0 says {self._size}"
        elif not 0 <= rank < self._size:
            why = Why.RANK, f"there is no rank {rank} in a job of {self._size} processes"
        elif rank in self._members and self._members[rank] != (source, message.nonce):
            there = self._members[rank][0].address
            why = Why.RANK, f"rank {rank} is there already, at {there}"
        elif self._over is not None:
            why = self._over_for(rank, *self._over)
        if why is not None:
            self._refuse(source, message.nonce, *why)
            return
        self._members[rank] = source, message.nonce
        self._answer(source, self._run.write(Kind.WELCOME, message.nonce, {}))

    def _heard_foreign(self, source: Peer, message: Foreign) -> None:
        """Answer by what this side speaks; with a proof of the key it is a process of the job, which is over then."""
        text = (
            f"a process of the job, at {source.address}, speaks {message.versions} of {PROTOCOL}, "
            f"and rank 0 {VERSIONS}"
        )
        _log.warning("rendezvous: %s", text)
        self._refuse(source, bytes(16), Why.VERSION, text)
        if message.is_proven and self._over is None:
            self._end(Why.VERSION, text)

    @staticmethod
    def _over_for(rank: int, why: Why, text: str) -> tuple[Why, str]:
        """Why a rank is not let in any more."""
        return why, f"rank {rank} comes late: {text}" if why is Why.LATE else text

    def _end(self, why: Why, text: str, late: str | None = None) -> None:
        """Refuse all that wait at the fence. Those that come from now on are refused alike, or as late."""
        self._over = Why.LATE if late else why, late or text
        for rank in self._arrived:
            peer, nonce = self._members[rank]
            self._refuse(peer, nonce, why, text)
        self._arrived = {}

    def _at_fence(self, source: Peer, message: Message) -> None:
        rank = _rank(message)
        if self._members.get(rank) != (source, message.nonce) or not is_fence(message.body):
            self._refuse(source, message.nonce, Why.RANK, f"this process is not rank {rank} of the job")
        elif self._over is not None:
            self._refuse(source, message.nonce, *self._over_for(rank, *self._over))
        else:
            self._arrived[rank] = message.body
            if len(self._arrived) == self._size:
                self._answer_all()

    def _answer_all(self) -> None:
        values: dict[str, str] = {}
        for body in self._arrived.values():
            values |= body["values"]
        for rank, body in self._arrived.items():
            peer, nonce = self._members[rank]
            got = {name: values[name] for name in body["wanted"] if name in values}
            self._answer(peer, self._run.write(Kind.VALUES, nonce, {"values": got}))
        self._arrived = {}

    def _give_up(self) -> None:
        present = self._arrived if len(self._members) == self._size else self._members
        missing = [str(rank) for rank in range(self._size) if rank not in present]
        shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        self._end(
            Why.MISSING,
            f"rank {shown} did not come",
            f"the others gave up after {self._deadline.seconds:g} s without rank {shown}",
        )

    def _refuse(self, peer: Peer, nonce: bytes, why: Why, text: str) -> None:
        self._answer(peer, self._run.write(Kind.REFUSED, nonce, {"why": why, "text": text}))

    def _answer(self, peer: Peer, blob: bytes) -> None:
        self._unsent.append((peer, blob))

    def _send_answers(self, deadline: Deadline) -> None:
        """As many as there is room for until then."""
        self._answers = [each for each in self._answers if not each.done]
        while self._unsent:
            peer, blob = self._unsent[0]
            try:
                answer = self.endpoint.tsend(blob, peer, tag=ANSWER_TAG, room_timeout=deadline.left())
            except TimedOut:
                return
            except FabricError as error:  # of one process
                _log.info("rendezvous: %s", error)
            else:
                self._answers.append(answer)
            self._unsent.popleft()


def _rank(message: Message) -> int:
    rank = message.body.get("rank")
    return rank if isinstance(rank, int) else -1
