# SPDX-License-Identifier: BSD-3-Clause
"""The loops that benchmarks share: ping-pong, windows, and a clock that starts after the warm-up."""

from collections.abc import Callable
from time import perf_counter_ns

import numpy as np
import numpy.typing as npt

import ofipy
from fabtests.base.pattern import check, pattern
from fabtests.base.session import LIMIT, Session
from ofipy.cli.support import deadline

__all__ = ["Clock", "bandwidth", "every_size", "pingpong"]

Bytes = npt.NDArray[np.uint8]

SLICE = 1024  # round trips of one call into C; Ctrl-C and time-outs are seen between two
SLOWEST = 1000.0  # round trips a second, below which a loop in C is given up where the user names no time


class Clock:
    """Marks of a run; the first one after the warm-up starts it."""

    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.marks: list[int] = []

    def seconds(self) -> float:
        """From the first mark to the last."""
        return (self.marks[-1] - self.marks[0]) / 1e9

    def singles(self, transfers: float | npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Nanoseconds of one transfer between marks."""
        return np.diff(np.array(self.marks, dtype=np.float64)) / transfers


def every_size(session: Session, run: Callable[[Session, int], None]) -> None:
    """Run a benchmark for each size that was asked for."""
    limit = session.endpoint.info.max_msg_size
    for size in session.options.sizes.sizes:
        if size <= limit:
            run(session, size)


def pingpong(session: Session, size: int) -> None:
    """One message there and one back, again and again."""
    options = session.options
    count, clock = options.count(size), Clock(options.warmup)
    outgoing = session.buffer(size)
    if session.late_receives:
        session.post()
        session._sync_in_band(post=False)
    else:
        session.sync()
    if options.verify:
        outgoing[:] = pattern(size)
    if _may_loop_in_c(session):
        _pingpong_in_c(session, outgoing, count)
        return
    turn = _late_turn if session.late_receives else _turn
    for number in range(count + options.warmup):
        if number >= options.warmup:
            clock.marks.append(perf_counter_ns())
        turn(session, outgoing, options.verify and number >= options.warmup)
    clock.marks.append(perf_counter_ns())
    singles = clock.singles(2) if session.client else None
    session.report.add(size, count, clock.seconds(), transfers=2, singles=singles)


def _may_loop_in_c(session: Session) -> bool:
    """Whether nothing has to be done between two messages but what the loop in C does.

    One turn at least is made before: it takes the receive that is posted ahead.
    """
    options = session.options
    plain = not (options.verify or session.late_receives or options.delivery or options.inject is not None)
    reliable = options.ep_type != "dgram"  # the loop in C waits for a lost datagram for ever
    waits = options.wait == "sread" and options.completion == "queue"
    return plain and reliable and waits and options.warmup > 0


def _pingpong_in_c(session: Session, outgoing: Bytes, count: int) -> None:
    """The warm-up here, and what is timed in C, as in the C programs: operations are prepared once."""
    for left in reversed(range(session.options.warmup)):
        _turn(session, outgoing, verify=False, last=left == 0)
    nanoseconds = np.zeros(count, np.int64)
    receive, tagged, seconds = session.buffer(outgoing.size), session.program.tagged, 0.0
    # With --timeout a clock runs already.
    with deadline(None if session.options.timeout else max(LIMIT, count / SLOWEST)):
        for begin in range(0, count, SLICE):
            times = nanoseconds[begin : begin + SLICE]
            seconds += ofipy.measure.pingpong(
                session.endpoint,
                session.peer,
                first=session.client,
                send=outgoing,
                receive=receive,
                iterations=len(times),
                tag=session.sent if tagged else None,
                receive_tag=session.received if tagged else None,
                tag_step=1,
                nanoseconds=times,
            )
            session.sent += len(times)
            session.received += len(times)
    session.post()
    singles = nanoseconds / 2 if session.client else None
    session.report.add(outgoing.size, count, seconds, transfers=2, singles=singles)


def _turn(session: Session, outgoing: Bytes, verify: bool, *, last: bool = False) -> None:
    """One message each way; behind the last one no receive is posted ahead."""
    if session.client:
        session.send(outgoing)
    incoming = session.take()
    if verify:
        _check(session, incoming, outgoing.size)
    if not last:
        session.post()
    if not session.client:
        session.send(outgoing)


def _late_turn(session: Session, outgoing: Bytes, verify: bool) -> None:
    if session.client:
        session.send(outgoing)
    session.post()
    incoming = session.take()
    if verify:
        _check(session, incoming, outgoing.size)
    if not session.client:
        session.send(outgoing)


def _check(session: Session, data: Bytes, size: int) -> None:
    session.expect(data.size == size, f"a message of {data.size} bytes where {size} were sent")
    check(data)


def bandwidth(session: Session, size: int) -> None:
    """The client sends windows of messages; the server answers each window."""
    session.sync()
    options = session.options
    count, window = options.count(size, factor=2), options.window
    clock = Clock(options.warmup)
    buffers = [session.buffer(max(size, 1024)) for _ in range(min(window, count + options.warmup))]
    if session.client:
        for buffer in buffers:
            buffer[:size] = pattern(size)
    under_way: list[object] = []
    shares: list[int] = []
    for number in range(count + options.warmup):
        if number == options.warmup:
            clock.marks.append(perf_counter_ns())
            shares.append(0)
        slot = len(under_way)
        if session.client:
            under_way.append(session.start_send(buffers[slot][:size]))
        else:
            session.post(buffers[slot])
            under_way.append(None)
        if number >= options.warmup:
            shares[-1] += 1
        if len(under_way) == window:
            _end_window(session, under_way, size)
            if number >= options.warmup:
                clock.marks.append(perf_counter_ns())
                shares.append(0)
    _end_window(session, under_way, size)
    clock.marks.append(perf_counter_ns())
    singles = clock.singles(np.maximum(shares, 1)) if session.client else None
    session.report.add(size, count, clock.seconds(), singles=singles)


def _end_window(session: Session, under_way: list[object], size: int) -> None:
    """Nothing of it is under way any more, on both sides."""
    if session.client:
        for request in under_way:
            session.wait(request)
        session.receive()
    else:
        for _ in under_way:
            data = session.take()
            if session.options.verify:
                _check(session, data, size)
        session.ready()
    under_way.clear()
