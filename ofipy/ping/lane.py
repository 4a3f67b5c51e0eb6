# SPDX-License-Identifier: BSD-3-Clause
"""The client: an endpoint of one provider, and numbered round trips to a server."""

import contextlib
import random
import secrets
import time
from enum import Enum
from types import TracebackType
from typing import Self

import ofipy
from ofipy.ping.place import Place
from ofipy.ping.tally import Tally
from ofipy.ping.wire import (
    BYE,
    ECHO,
    HEADER,
    LARGEST,
    NAME,
    TAG_ANSWER,
    TAG_ASK,
    VERSIONS,
    WireError,
    pack_hello,
    parse_hello,
    parse_versions,
)

__all__ = ["Lane", "NoServer", "Outcome"]

_NUMBER_MASK = (1 << 64) - 1


class NoServer(Exception):
    """Nobody answered the hello in time."""


class Outcome(Enum):
    """How a round trip ended."""

    ANSWERED = "answered"
    LOST = "lost"
    """No answer in time."""
    WRONG = "wrong"
    """An answer with other contents, or to no question."""


class Lane:
    """Round trips over one provider.

    Parameters
    ----------
    place : Place
        The server.
    provider : str, optional
        Provider by name. Default: as configured, which is the lane that a program would use.
    size : int
        Bytes of payload.

    Raises
    ------
    ofipy.FabricError
        When no endpoint can be opened, or the provider does not lead there.
    """

    def __init__(self, place: Place, *, provider: str | None = None, size: int = 56) -> None:
        self.place = place
        self.size = size
        self.tally = Tally()
        self.remark = ""
        """Why the last round trip was lost, as far as the transport says."""
        self.endpoint = ofipy.open(provider=provider)
        try:
            self.peer = self.endpoint.insert(str(place))
        except BaseException:
            self.endpoint.close(linger=0)
            raise
        self._run = secrets.randbits(64)
        self._number = 0
        self._lost: set[int] = set()  # numbers whose answer may come yet
        self._buffer = bytearray(HEADER.size + LARGEST)
        self._receive: ofipy.Request | None = None

    @property
    def name(self) -> str:
        """The provider that carries the messages."""
        return self.endpoint.way(self.peer)

    @property
    def address(self) -> str:
        """Of the server, as the endpoint knows it."""
        return str(self.peer.address)

    def meet(self, seconds: float) -> tuple[str, ...]:
        """Exchange hellos.

        Parameters
        ----------
        seconds : float
            Time for the connection and the answer.

        Returns
        -------
        tuple of str
            What the server serves.

        Raises
        ------
        NoServer
            When nobody answers.
        ofipy.IncompatiblePeer
            When it speaks another version.
        ofipy.FabricError
            When the peer, or this side, refuses.
        WireError
            When the answer is none of this protocol.
        """
        until = time.monotonic() + seconds
        receive = self._post()
        send = self.endpoint.tsend(pack_hello(), self.peer, tag=TAG_ASK)
        try:
            send.wait(timeout=seconds)
            receive.wait(timeout=max(0.0, until - time.monotonic()))
        except ofipy.TimedOut:
            send.cancel()
            raise NoServer(
                f"no server answers at {self.place} within {seconds:g} s over {self.endpoint.provider}"
            ) from None
        self._receive = None
        said = parse_hello(bytes(memoryview(self._buffer)[: receive.length]))
        theirs = parse_versions(said)
        if not VERSIONS.include_one_of(theirs):
            raise VERSIONS.incompatible(theirs, NAME, peer=str(self.place))
        serves, largest = said.get("serves"), said.get("largest")
        if not isinstance(serves, list) or not all(isinstance(each, str) for each in serves):
            raise WireError("the server does not say what it serves")
        if type(largest) is int and self.size > largest:
            raise WireError(f"the server echoes {largest} bytes at most, and {self.size} are asked for")
        return tuple(serves)

    def ask(self, question: bytes, seconds: float) -> bytes:
        """Send one message and return the one that comes back, whatever it is.

        Raises
        ------
        ofipy.FabricError
            When the server is lost, or does not answer in time.
        """
        until = time.monotonic() + seconds
        self.endpoint.tsend(question, self.peer, tag=TAG_ASK).wait(timeout=seconds)
        while True:
            receive = self._receive or self._post()
            try:
                receive.wait(timeout=max(0.0, until - time.monotonic()))
            except ofipy.TimedOut:
                raise
            except ofipy.FabricError:
                self._receive = None
                raise
            self._receive = None
            answer = bytes(memoryview(self._buffer)[: receive.length])
            if answer[:1] != ECHO:  # of a ping that was given up
                return answer

    def ping(self, seconds: float) -> tuple[Outcome, float]:
        """One round trip.

        Parameters
        ----------
        seconds : float
            After this time it is lost, though its answer may come later.

        Returns
        -------
        tuple of Outcome and float
            How it ended, and its time in seconds.
        """
        self._number = (self._number + 1) & _NUMBER_MASK
        message = HEADER.pack(ECHO, self._run, self._number) + self._payload(self._number)
        begin = time.perf_counter_ns()
        until = begin + int(seconds * 1e9)
        outcome, taken = Outcome.LOST, 0.0
        send: ofipy.Request | None = None
        try:
            receive = self._receive or self._post()
            send = self.endpoint.tsend(message, self.peer, tag=TAG_ASK)
            while True:
                receive.wait(timeout=max(0.0, (until - time.perf_counter_ns()) / 1e9))
                taken = (time.perf_counter_ns() - begin) / 1e9
                self._receive = None
                answer = memoryview(self._buffer)[: receive.length]
                if answer == message:
                    outcome = Outcome.ANSWERED
                    break
                if not self._count_late(answer):
                    outcome, self.remark = Outcome.WRONG, self._describe(answer)
                    break
                receive = self._post()
        except ofipy.TimedOut:
            self.remark = f"no answer within {seconds:g} s"
            if send is not None:
                send.cancel()
        except ofipy.FabricError as error:
            self._receive = None
            self.remark = str(error.message)
        if outcome is Outcome.LOST:
            self._lost.add(self._number)
        self.tally.add(outcome.value, taken)
        return outcome, taken

    def _post(self) -> ofipy.Request:
        self._receive = self.endpoint.trecv_into(self._buffer, self.peer, tag=TAG_ANSWER)
        return self._receive

    def _payload(self, number: int) -> bytes:
        """Contents that differ from message to message."""
        return random.Random(self._run ^ number).randbytes(self.size)

    def _count_late(self, answer: memoryview) -> bool:
        """Whether it is the right answer to a message that was lost; counted as late then, once."""
        if len(answer) < HEADER.size:
            return False
        kind, run, number = HEADER.unpack_from(answer)
        if kind != ECHO or run != self._run or number not in self._lost:
            return False
        if answer[HEADER.size :] != self._payload(number):
            return False
        self._lost.remove(number)
        self.tally.late += 1
        return True

    def _describe(self, answer: memoryview) -> str:
        """What is wrong with it."""
        expected = HEADER.size + self.size
        if len(answer) != expected:
            return f"an answer of {len(answer)} bytes, {expected} were sent"
        right = HEADER.pack(ECHO, self._run, self._number) + self._payload(self._number)
        differing = [index for index in range(expected) if answer[index] != right[index]]
        return f"{len(differing)} of {expected} bytes differ, the first at {differing[0]}"

    def close(self) -> None:
        """Say goodbye, as far as the server is there, and close the endpoint."""
        with contextlib.suppress(ofipy.FabricError):
            incarnation = self.endpoint.incarnation(self.peer)
            self.endpoint.tsend(BYE, self.peer, tag=TAG_ASK, incarnation=incarnation).wait(timeout=1)
        self.endpoint.close(linger=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
