# SPDX-License-Identifier: BSD-3-Clause
"""Messages of many sizes both ways, and remote memory, while system calls and allocations of ofipy's C fail.

A fault may end a connection, refuse an operation, or refuse to open anything; every operation ends all the same, with
an error where something is lost.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from board import Kind
from encrypted import encrypting
from numbered import WrongContents, message, number_of
from pair import Pair
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from programs.storms import warm

__all__ = ["Exchange", "list_programs"]

TARGETS = ("shm", "tcp", "link", "rdmfake", "tcp/msg")
ENCRYPTED = ("tcp", "tcp/msg")
"""Targets that are explored encrypted, too."""
TAG = 7
SIZES = (16, 4096, 60_000, 320_000)
LITTLE = 0.05
"""Seconds."""
ERRORS = (ofipy.FabricError, MemoryError)


class Exchange:
    """What was posted over a pair, and what came of it.

    Attributes
    ----------
    errors : list of str
        What the program was told went wrong.
    """

    def __init__(self, pair: Pair, stage: Stage) -> None:
        self.pair, self._stage = pair, stage
        self.errors: list[str] = []
        self.posted: list[tuple[str, Any, Any]] = []
        self.sent: dict[int, list[tuple[int, Any]]] = {0: [], 1: []}
        self.received: dict[int, list[int]] = {0: [], 1: []}
        self._numbers = 0

    def sides(self, side: int) -> tuple[Any, Any]:
        """The endpoint of a side, and the peer that it sends to."""
        pair = self.pair
        return (pair.a, pair.to_b) if side == 0 else (pair.b, pair.to_a)

    def attempt(self, call: Callable[[], Any]) -> Any:
        """What a call returns; None after an error, which is noted."""
        try:
            return call()
        except ERRORS as error:
            self.errors.append(f"{type(error).__name__}: {error}")
            return None

    def send(self, side: int, size: int) -> None:
        """Send a message from a side."""
        endpoint, peer = self.sides(side)
        self._numbers += 1
        number = self._numbers
        data = message(number, size)
        request = self.attempt(lambda: endpoint.tsend(data, peer, tag=TAG))
        if request is not None:
            self.sent[side].append((number, request))

    def receive(self, side: int, into: int | None = None) -> None:
        """Post a receive at a side; into memory of that size, or of the message's."""
        endpoint, _ = self.sides(side)
        buffer = None if into is None else bytearray(into)
        call = (
            partial(endpoint.trecv, tag=TAG)
            if buffer is None
            else partial(endpoint.trecv_into, buffer, tag=TAG)
        )
        request = self.attempt(call)
        if request is not None:
            self.posted.append((f"receive at {side}", request, (side, buffer)))

    def finish(self, what: str, request: Any) -> Any:
        """The result of a request, which must end; None if it ended with an error."""
        try:
            with suppress(ofipy.TimedOut):
                return request.wait(timeout=LITTLE)
            # What fails for good may keep it from ending as long as it fails.
            self._stage.board.disarm()
            # After an error it may wait for a message that was not sent.
            return request.wait(timeout=LITTLE if self.errors else PATIENCE)
        except ofipy.TimedOut:
            self._note_failed_sends()
            self._note_lost_peers()
            if self.errors:
                request.cancel()
                return None
            raise Wrong(f"hang: {what} has not ended within {PATIENCE:g} s") from None
        except ERRORS as error:
            self.errors.append(f"{what}: {type(error).__name__}: {error}")
            return None

    def _note_failed_sends(self) -> None:
        for sent in self.sent.values():
            for number, request in sent:
                if request.done and (error := request.exception()) is not None:
                    self.errors.append(f"send {number}: {type(error).__name__}: {error}")

    def _note_lost_peers(self) -> None:
        """A short send is complete before it arrives; if it is lost with the connection, only the peer's loss tells."""
        for endpoint in (self.pair.a, self.pair.b):
            if endpoint.stats().peers_lost:
                self.errors.append(f"{endpoint!r} has lost its peer")

    def finish_receives(self) -> None:
        """Wait for all that is posted, and note which messages came."""
        for what, request, (side, buffer) in self.posted:
            result = self.finish(what, request)
            if result is not None:
                data = result.data if buffer is None else buffer[: result.length]
                try:
                    self.received[side].append(number_of(data))
                except WrongContents as error:
                    raise Wrong(f"wrong contents: {error}") from None
        self.posted.clear()

    def finish_sends(self) -> None:
        """Wait for the sends, which end once a receive took the message, or the peer is lost."""
        for side in self.sent:
            self.sent[side] = [
                (number, request)
                for number, request in self.sent[side]
                if self.finish(f"send {number}", request) is not None
            ]

    def drain(self) -> None:
        """Receive what was sent and has not been received: messages whose receives failed."""
        for side in (0, 1):
            expected = {number for number, _ in self.sent[1 - side]}
            endpoint, _ = self.sides(side)
            while expected - set(self.received[side]):
                request = self.attempt(partial(endpoint.trecv, tag=TAG))
                if request is None:
                    return
                try:
                    found = request.wait(timeout=LITTLE if self.errors else PATIENCE)
                except ofipy.TimedOut:
                    request.cancel()
                    self._note_lost_peers()
                    if not self.errors:
                        lost = sorted(expected - set(self.received[side]))
                        raise Wrong(f"lost message {lost[0]}, and nobody was told") from None
                    return
                except ERRORS as error:
                    self.errors.append(f"drain: {error}")
                    return
                self.received[side].append(number_of(found.data))

    def check(self) -> None:
        """Every message came once, in the order in which it was sent, and was sent."""
        for side in (0, 1):
            came = self.received[side]
            if len(came) != len(set(came)):
                raise Wrong(f"a message came twice: {came}")
            if came != sorted(came):
                raise Wrong(f"messages came in another order: {came}")


def exchange(target: str, stage: Stage) -> None:
    """Open, exchange, check, and close."""
    stage.board.arm()
    try:
        pair = Pair(target)
    except (*ERRORS, IndexError) as error:  # the latter: the provider says that it cannot run here
        stage.notes.append(f"open: {error}")
        if not stage.has_fault:
            raise
        return
    work, is_over = Exchange(pair, stage), False
    try:
        for size in SIZES:
            work.receive(1, size)
            work.send(0, size)
            work.send(1, size)
            work.receive(0)
        work.attempt(lambda: _write_remote(pair, work))
        work.finish_receives()
        stage.board.disarm()
        work.finish_sends()
        work.finish_receives()
        work.drain()
        stage.notes += work.errors
        if work.errors and not stage.has_fault:
            raise Wrong(f"an error without a fault: {work.errors[0]}")
        work.check()
        if not work.errors:
            _send_fresh(work)
        is_over = True
    finally:
        stage.board.disarm()
        if work.errors or not is_over:
            # Nothing more is expected to arrive.
            pair.a.close(linger=0)
            pair.b.close(linger=0)
        pair.close()


def _write_remote(pair: Pair, work: Exchange) -> None:
    """Write into memory of the other side, and read it back."""
    if not pair.a.info.caps & ofipy.Cap.RMA:
        return
    memory = np.zeros(8192, np.uint8)
    region = pair.b.register(memory, access="remote_read|remote_write")
    try:
        data, back = np.arange(8192, dtype=np.uint8), np.zeros(8192, np.uint8)
        remote = region.remote
        if work.finish("write", pair.a.write(data, pair.to_b, remote)) is None:
            return
        if work.finish("read", pair.a.read(back, pair.to_b, remote)) is not None and not (back == data).all():
            raise Wrong("wrong contents: what was written is not what was read")
    finally:
        region.close()


def _send_fresh(work: Exchange) -> None:
    for side in (0, 1):
        work.send(side, 16)
        work.receive(1 - side)
    work.finish_receives()
    if work.errors:
        raise Wrong(f"a fresh message does not pass: {work.errors[0]}")


def exchange_encrypted(target: str, stage: Stage) -> None:
    """The same over connections that are encrypted by TLS."""
    with encrypting():
        exchange(target, stage)


def warm_encrypted() -> bool:
    """Load OpenSSL. False: this machine has none."""
    try:
        with encrypting():
            for target in ENCRYPTED:
                warm(target)
    except ofipy.ProviderUnavailable:
        return False
    return True


def list_programs() -> list[Program]:
    """The exchange over each target."""
    for target in TARGETS:
        warm(target)
    runs = [(target.replace("/", "-"), partial(exchange, target)) for target in TARGETS]
    if warm_encrypted():
        runs += [
            (f"{target.replace('/', '-')}-tls", partial(exchange_encrypted, target)) for target in ENCRYPTED
        ]
    return [Program(f"faults/{name}/exchange", Kind.SYSTEM | Kind.MEMORY, run) for name, run in runs]
