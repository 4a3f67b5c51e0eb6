# SPDX-License-Identifier: BSD-3-Clause
"""The loops that benchmarks of remote memory share."""

from time import perf_counter_ns

import rich_click as click

import ofipy
from fabtests.base.memory import Memory
from fabtests.base.options import Options
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Failed
from fabtests.base.session import SYNC_BYTES, Session
from fabtests.base.timing import Clock

__all__ = ["OPERATION", "bandwidth", "completion", "no_verification", "pingpong"]

OPERATION = click.option(
    "-o",
    "operation",
    type=click.Choice(["write", "read", "writedata"]),
    default="write",
    show_default=True,
    help="Operation on the other side's memory.",
)


def no_verification(options: Options) -> None:
    """Refuse ``-v`` where nothing says that all of a write has come."""
    if options.verify and options.extra["operation"] != "writedata":
        raise click.UsageError("-v needs -o writedata: of a plain write nobody says when all of it has come")


def _no_reads(options: Options) -> None:
    if options.extra["operation"] == "read":
        raise Failed("reads need nobody on the other side: only write and writedata play ping-pong")


def pingpong(session: Session, memory: Memory, size: int) -> None:
    """Write there and back; the other side looks at the last byte, or at what came with the write."""
    _no_reads(session.options)
    options, data = session.options, session.options.extra["operation"] == "writedata"
    count, clock = options.count(size), Clock(options.warmup)
    if not data:
        memory.rx[size - 1] = 0xFF
    session.sync()
    if options.verify:
        memory.tx[: size - 1] = pattern(size - 1)

    def come(number: int) -> None:
        if data:
            memory.take_data(1)
        else:
            memory.await_byte(size - 1, number & 0xFF)
        if options.verify and number >= options.warmup:
            check(memory.rx[: size - 1], "write")

    def go(number: int) -> None:
        if not data:
            memory.tx[size - 1] = number & 0xFF
        session.wait(memory.write(0, size, data=data))

    first, second = (go, come) if session.client else (come, go)
    for number in range(count + options.warmup):
        if number >= options.warmup:
            clock.marks.append(perf_counter_ns())
        first(number)
        second(number)
    clock.marks.append(perf_counter_ns())
    singles = clock.singles(2) if session.client else None
    session.report.add(size, count, clock.seconds(), transfers=2, singles=singles)


def completion(session: Session, memory: Memory, size: int) -> None:
    """Time until each write of the client has finished; the server waits for the end."""
    _no_reads(session.options)
    options, data = session.options, session.options.extra["operation"] == "writedata"
    count, clock = options.count(size), Clock(options.warmup)
    if data and not session.client:
        session.post_for_data(options.window)
    session.sync()
    if not session.client:
        if data:
            memory.take_data(count + options.warmup)
        session.sync()
        return
    for number in range(count + options.warmup):
        if number >= options.warmup:
            clock.marks.append(perf_counter_ns())
        session.wait(memory.write(0, size, data=data))
    clock.marks.append(perf_counter_ns())
    session.report.add(size, count, clock.seconds(), singles=clock.singles(1))
    session.sync()


class _Window:
    """What is under way of one window."""

    def __init__(self, session: Session, memory: Memory, size: int) -> None:
        self._session = session
        self._memory = memory
        self._size = size
        self._kind = session.options.extra["operation"]
        self._requests: list[ofipy.Request] = []
        self._warm = 0
        self.count = 0

    def add(self, *, warming: bool) -> None:
        """Start one more operation, or on the server await one more."""
        session, memory, size = self._session, self._memory, self._size
        offset = SYNC_BYTES + self.count * size
        self.count += 1
        if self._kind == "writedata":
            # Until the clock starts, a message from the server goes with each write.
            self._warm += warming
            if session.client:
                if warming:
                    # Now, not when its turn comes: to libfabric's tcp a message that has no receive is in the way of
                    # all that comes behind it, the answers to writes too.
                    session.post()
                self._requests.append(memory.write(offset, size, data=True))
            elif warming:
                session.start_send(memory.tx[:SYNC_BYTES])
        elif self._kind == "write":
            self._requests.append(memory.write(offset, size))
        else:
            self._requests.append(memory.read(offset, size))

    def end(self) -> None:
        """Wait for all of it."""
        session = self._session
        for request in self._requests:
            session.wait(request)
        if self._kind == "writedata":
            if session.client:
                for _ in range(self._warm):
                    session.take()
                session.receive()
            else:
                self._memory.take_data(self.count)
                session.ready()
        if session.options.verify and (self._kind != "writedata" or not session.client):
            if self._kind == "write":
                session.sync()
            check(self._memory.rx[SYNC_BYTES : SYNC_BYTES + self.count * self._size], self._kind)
        self._requests.clear()
        self.count = self._warm = 0


def bandwidth(session: Session, memory: Memory, size: int) -> None:
    """Windows of writes or reads, both ways; of writes with data, from the client."""
    options = session.options
    if options.extra["operation"] == "writedata" and not session.client:
        session.post_for_data(options.window)
    session.sync()
    count, clock = options.count(size, factor=2), Clock(options.warmup)
    window = _Window(session, memory, size)
    room = size * options.window
    for number in range(count + options.warmup):
        if number == options.warmup:
            window.end()
            clock.marks.append(perf_counter_ns())
        if window.count == 0 and options.verify and size:
            memory.tx[SYNC_BYTES : SYNC_BYTES + room] = pattern(room)
            memory.rx[SYNC_BYTES : SYNC_BYTES + room] = 0
            session.sync()
        window.add(warming=number < options.warmup)
        if window.count == options.window:
            window.end()
    window.end()
    clock.marks.append(perf_counter_ns())
    session.report.add(size, count, clock.seconds())
