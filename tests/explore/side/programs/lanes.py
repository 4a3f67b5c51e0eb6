# SPDX-License-Identifier: BSD-3-Clause
"""Streams both ways over two lanes of ``link``, while calls of either lane fail, and connections of the network end.

One side knows the other by both lanes, the other one by the network alone, so that messages leave by one lane and
arrive by the other. Whatever is missing lies between two incarnations, and both sides were told of the first one's end.
"""

import itertools
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from board import Action, Kind
from numbered import message, number_of
from pair import info_of
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from ofipy._base.binding import lib
from programs.storms import warm

__all__ = ["list_programs"]

TAG = 7
SIZES = (16, 60_000, 16, 320_000, 4096, 16)
END = 0
"""Number of the message after which nothing follows."""
LITTLE = 0.05
"""Seconds."""
ERRORS = (ofipy.FabricError, MemoryError)
HEAD = 40
"""Bytes of an address before its entries; docs/explanation/link.md."""


@contextmanager
def listening() -> Iterator[None]:
    """Endpoints listen at the network, too."""
    os.environ["OFIPY_INTERFACE"] = "lo"
    try:
        yield
    finally:
        del os.environ["OFIPY_INTERFACE"]


def keep_lanes(address: Any, *names: str) -> bytes:
    """The address without the entries of other providers."""
    whole, at, entries = bytes(address), HEAD, []
    while at < len(whole):
        name_end = at + 1 + whole[at]
        end = name_end + 2 + int.from_bytes(whole[name_end : name_end + 2], "little")
        if whole[at + 1 : name_end].decode() in names:
            entries.append(whole[at:end])
        at = end
    return whole[:5] + bytes([len(entries)]) + whole[6:HEAD] + b"".join(entries)


def end_connections() -> None:
    """End every connection over tcp of this process, as a broken network does."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            line = socket.socket(fileno=os.dup(int(name)))
            is_listener = line.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if line.family in (socket.AF_INET, socket.AF_INET6) and not is_listener:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
            line.close()


class Side:
    """An endpoint, what it sent to the other one, and what it was told."""

    def __init__(self) -> None:
        self.domain = ofipy.Fabric(info_of("link")).domain(progress="auto")
        self.events = self.domain.event_queue()
        self.endpoint = self.domain.endpoint(eq=self.events).enable()
        self.peer: Any = None
        self.sends: dict[int, Any] = {}
        self.arrived: list[tuple[int, int]] = []
        """Incarnation and number of each message; (0, -1) for a receive that ended with the loss of its message."""
        self._receive: Any = None
        self._losses: list[int] = []

    def send(self, size: int) -> None:
        """Send the next message, and no later one if that is refused."""
        number = len(self.sends) + 1
        with suppress(*ERRORS):
            self.sends[number] = self.endpoint.tsend(message(number, size), self.peer, tag=TAG)

    def losses(self) -> list[int]:
        """Incarnations of whose end the endpoint was told."""
        while (event := self.events.read()) is not None:
            if event.kind is ofipy.EventKind.PEER_LOST and event.incarnation:
                self._losses.append(event.incarnation)
        return self._losses

    def receive(self, timeout: float) -> bool:
        """Receive one message. Returns whether nothing follows."""
        try:
            if self._receive is None:
                self._receive = self.endpoint.trecv(tag=TAG)
            found = self._receive.wait(timeout=timeout)
        except ofipy.TimedOut:
            return False
        except ERRORS:
            self._receive = None
            self.arrived.append((0, -1))
            return False
        self._receive = None
        number = number_of(found.data)
        if number != END:
            self.arrived.append((found.incarnation, number))
        return number == END

    def close(self) -> None:
        self.endpoint.close(linger=0)
        self.domain.fabric.close()


def stream(lanes: tuple[str, ...], stage: Stage) -> None:
    """Send both ways while something happens, then a last message, and check what came."""
    sides: list[Side] = []
    lib.ofp_param_set(b"CONNECT_TIMEOUT", b"1")
    try:
        with listening():
            stage.board.arm()
            try:
                sides += [Side(), Side()]
                first, second = sides
                first.peer = first.endpoint.insert(keep_lanes(second.endpoint.address, *lanes))
                second.peer = second.endpoint.insert(keep_lanes(first.endpoint.address, "tcp"))
            except (*ERRORS, IndexError) as error:  # the latter: the provider says that it cannot run here
                stage.notes.append(f"open: {error}")
                if not stage.has_fault:
                    raise
                return
            for number, size in enumerate(SIZES, start=1):
                for side in sides:
                    side.send(size)
                if stage.board.reach(Kind.AWAIT, f"round {number}") == Action.DROP:
                    end_connections()
                for side in sides:
                    side.receive(LITTLE)
            stage.board.disarm()
        for sender, receiver in ((first, second), (second, first)):
            _end_stream(sender, receiver)
            _check(stage, sender, receiver)
    finally:
        stage.board.disarm()
        for side in sides:
            side.close()


def _end_stream(sender: Side, receiver: Side) -> None:
    """Send the last message until it arrives: it may be lost with its connection."""
    began, last = time.monotonic(), None
    while not receiver.receive(LITTLE):
        # A call may have failed as if the connection had ended, which the kernel says of no whole one.
        if time.monotonic() > began + PATIENCE / 4:
            end_connections()
        if time.monotonic() > began + PATIENCE:
            raise Wrong(f"hang: the last message has not come, after {receiver.arrived}")
        if last is None or (last.done and last.exception() is not None):
            with suppress(*ERRORS):
                last = sender.endpoint.tsend(message(END, 16), sender.peer, tag=TAG, complete="delivery")


def _check(stage: Stage, sender: Side, receiver: Side) -> None:
    """Nothing is missing within an incarnation, and both sides know of each end of one."""
    arrived = [(incarnation, number) for incarnation, number in receiver.arrived if incarnation]
    failed = {number for number, request in sender.sends.items() if request.done and request.exception()}
    stage.notes.append(f"arrived {receiver.arrived}, failed {sorted(failed)}")
    stage.notes.append(f"losses: sender {sender.losses()}, receiver {receiver.losses()}")
    numbers = [number for _, number in arrived]
    if numbers != sorted(set(numbers)):
        raise Wrong(f"messages came twice or in another order: {numbers}")
    for (before, earlier), (after, later) in itertools.pairwise(arrived):
        is_gap = later != earlier + 1
        if before == after and is_gap and (0, -1) not in receiver.arrived:
            raise Wrong(f"within an incarnation, message {earlier + 1} is missing")
        if before != after and before not in receiver.losses():
            raise Wrong(f"the receiver was not told of the end of incarnation {before}")
        if is_gap and not sender.losses() and not set(range(earlier + 1, later)) <= failed:
            raise Wrong(f"the sender was not told that message {earlier + 1} is lost")
    if not stage.has_fault and numbers != list(range(1, len(SIZES) + 1)):
        raise Wrong(f"without a fault, only {numbers} came")
    silent = set(sender.sends) - set(numbers) - failed
    if silent and not sender.losses() and not receiver.losses():
        raise Wrong(f"lost message {min(silent)}, and nobody was told")


def list_programs() -> list[Program]:
    """One side sends by shared memory and the other one by the network; or both by the network."""
    warm("link")
    cases = {"both": ("shm", "tcp"), "network": ("tcp",)}
    return [
        Program(f"lanes/link/{name}", Kind.SYSTEM | Kind.AWAIT, partial(stream, lanes))
        for name, lanes in cases.items()
    ]
