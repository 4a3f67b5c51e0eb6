# SPDX-License-Identifier: BSD-3-Clause
"""Ping-pongs of tagged messages."""

import asyncio
from time import perf_counter_ns

import numpy as np

import ofipy
from fabtests.compare.contender import TimedInC, Times
from fabtests.compare.ways.way import TAG_ACKNOWLEDGE, Way
from ofipy.pingpong.loop import TAG_PING, PingPong
from ofipy.pingpong.side import Side

__all__ = ["Awaited", "Blocking", "Native", "Prepared"]


class Native(TimedInC, Way):
    """The loops in C; they stream too."""

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
        ofipy.measure.pingpong(
            self.side.endpoint,
            self.side.peer,
            first=self.first,
            tag=TAG_PING,
            send=self.outgoing,
            receive=self.incoming,
            iterations=count,
            nanoseconds=times,
        )

    def stream(self, window: int) -> None:
        """One call."""
        ofipy.measure.stream(
            self.side.endpoint,
            self.side.peer,
            first=self.first,
            tag=TAG_ACKNOWLEDGE,
            buffer=self.outgoing if self.first else self.incoming,
            messages=window,
        )


class Blocking(Way):
    """``tsend(array, …).wait()`` and ``trecv_into(array, …).wait()``."""

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        endpoint, peer = self.side.endpoint, self.side.peer
        send, receive = endpoint.tsend, endpoint.trecv_into
        outgoing, incoming = self.outgoing, self.incoming
        if self.first:
            for _ in range(count):
                send(outgoing, peer, tag=TAG_PING).wait()
                receive(incoming, peer, tag=TAG_PING).wait()
        else:
            for _ in range(count):
                receive(incoming, peer, tag=TAG_PING).wait()
                send(outgoing, peer, tag=TAG_PING).wait()


class Prepared(Way):
    """Prepared operations, as ``ofipy pingpong`` uses them."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._game = PingPong(side, size)
        self.outgoing, self.incoming = self._game.outgoing, self._game.incoming

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        self._game.run(count)

    def sample(self, count: int) -> Times:
        """Single round trips."""
        return self._game.sample(count)


class Awaited(Way):
    """``await`` of each request."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._runner = asyncio.Runner()

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        self._runner.run(self._exchange(count, None))

    def sample(self, count: int) -> Times:
        """Single round trips, all within one run of the loop."""
        times = np.zeros(count, dtype=np.int64)
        self._runner.run(self._exchange(count, times))
        return times

    async def _exchange(self, count: int, times: Times | None) -> None:
        endpoint, peer = self.side.endpoint, self.side.peer
        send, receive = endpoint.tsend, endpoint.trecv_into
        outgoing, incoming = self.outgoing, self.incoming
        for index in range(count):
            begin = perf_counter_ns() if times is not None else 0
            if self.first:
                await send(outgoing, peer, tag=TAG_PING)
            await receive(incoming, peer, tag=TAG_PING)
            if not self.first:
                await send(outgoing, peer, tag=TAG_PING)
            if times is not None:
                times[index] = perf_counter_ns() - begin

    def close(self) -> None:
        """End the loop."""
        self._runner.close()
