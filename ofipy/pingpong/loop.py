# SPDX-License-Identifier: BSD-3-Clause
"""The tagged ping-pong: one loop for ``ofipy pingpong`` and ``fabtests rdm_tagged_pingpong``.

It runs over prepared operations. The send is started first and the receive while it is on its way, before the
answer can come; libfabric's program posts its next receive ahead of the send. Each side owns one send and one
receive buffer, ordinary numpy arrays.
"""

from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np
import numpy.typing as npt

import ofipy
from ofipy.pingpong.plan import Measurement, PingPongPlan
from ofipy.pingpong.side import Side

__all__ = ["PingPong", "VerificationError", "measure"]

TAG_PING = 7

# Up to this size every provider has taken the message when a send returns (it is injected), so the send of
# the last round needs no wait of its own.
INJECTED = 1024


class VerificationError(Exception):
    """A message arrived with bytes that were not sent."""

    exit_code = 1


class PingPong:
    """Buffers and prepared operations for messages of one size."""

    def __init__(self, side: Side, size: int, *, delivery: bool = False) -> None:
        endpoint = side.endpoint
        self._first = side.first
        self._pattern = np.arange(size, dtype=np.uint32).astype(np.uint8)
        self.outgoing = self._pattern.copy()
        self.incoming = np.zeros(size, dtype=np.uint8)
        complete: dict[str, Any] = {"complete": "delivery"} if delivery else {}
        self._send = endpoint.prepare_tsend(self.outgoing, side.peer, tag=TAG_PING, **complete)
        self._receive = endpoint.prepare_trecv(self.incoming, side.peer, tag=TAG_PING)
        self._wait_send = delivery or size > INJECTED

    def run(self, count: int) -> None:
        """Exchange `count` messages each way; the other side does the same."""
        send, receive, start = self._send, self._receive, ofipy.start
        wait_send, wait_receive = send.wait, receive.wait
        if self._first:
            for _ in range(count):
                start(send, receive)
                wait_receive()
                if self._wait_send:
                    wait_send()
        elif count:
            start(receive)
            for _ in range(count - 1):
                wait_receive()
                start(send, receive)
                if self._wait_send:
                    wait_send()
            wait_receive()
            start(send)
            wait_send()

    def sample(self, count: int) -> npt.NDArray[np.int64]:
        """Exchange like :meth:`run` and return each round trip's nanoseconds (zeros on the second side)."""
        times = np.zeros(count, dtype=np.int64)
        if not self._first:
            self.run(count)
            return times
        send, receive, start = self._send, self._receive, ofipy.start
        stamps = [0] * (count + 1)
        stamps[0] = perf_counter_ns()
        for index in range(1, count + 1):
            start(send, receive)
            receive.wait()
            if self._wait_send:
                send.wait()
            stamps[index] = perf_counter_ns()
        marks = np.array(stamps, dtype=np.int64)
        return marks[1:] - marks[:-1]

    def run_verified(self, count: int) -> None:
        """Exchange like :meth:`run`, with other content in every message, and check each byte.

        Raises
        ------
        VerificationError
            At the first byte that differs.
        """
        for number in range(count):
            self.outgoing[:] = self._pattern
            self.outgoing += np.uint8(number & 0xFF)
            ofipy.start(self._receive)
            if self._first:
                ofipy.start(self._send)
            self._receive.wait()
            self._check(number)
            if not self._first:
                ofipy.start(self._send)
            self._send.wait()

    def _check(self, number: int) -> None:
        wrong = np.flatnonzero(self.incoming != self._pattern + np.uint8(number & 0xFF))
        if wrong.size:
            raise VerificationError(
                f"message {number} of {self.incoming.size} bytes: "
                f"{wrong.size} bytes differ, the first at {wrong[0]}"
            )


def measure(side: Side, plan: PingPongPlan) -> Iterator[Measurement]:
    """Run the plan; both sides call this and yield a row for each size."""
    for size in plan.sizes:
        game = PingPong(side, size, delivery=plan.delivery)
        run = game.run_verified if plan.verify else game.run
        count = plan.count(size)
        side.sync()
        run(plan.warmup)
        begin = perf_counter_ns()
        run(count)
        seconds = (perf_counter_ns() - begin) / 1e9
        p50 = p99 = None
        if plan.samples:
            single = game.sample(min(count, plan.samples)) / 2e3
            if side.first:
                p50, p99 = (float(value) for value in np.percentile(single, (50, 99)))
        yield Measurement(size, count, seconds, p50_usec=p50, p99_usec=p99)
    side.sync()
