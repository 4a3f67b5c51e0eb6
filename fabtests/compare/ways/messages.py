# SPDX-License-Identifier: BSD-3-Clause
"""Ping-pongs of tagged messages."""

import asyncio
from collections.abc import Callable
from time import perf_counter_ns

import numpy as np

import ofipy
from fabtests.compare.contender import Bytes, TimedInC, Times
from fabtests.compare.ways.way import TAG_ACKNOWLEDGE, StreamsInC, Way
from ofipy.pingpong.loop import TAG_PING, PingPong
from ofipy.pingpong.side import Side

__all__ = ["TASKS", "Awaited", "AwaitedByMany", "Blocking", "Looped", "LoopedByMany", "Native", "Prepared"]

TASKS = 100


class Native(TimedInC, StreamsInC, Way):
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

    def windows(self, window: int, count: int) -> Times:
        """One call."""
        times = np.zeros(count, dtype=np.int64)
        ofipy.measure.stream(
            self.side.endpoint,
            self.side.peer,
            first=self.first,
            tag=TAG_ACKNOWLEDGE,
            buffer=self.outgoing if self.first else self.incoming,
            messages=window,
            windows=count,
            nanoseconds=times,
        )
        return times


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

    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    """None: asyncio's."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._runner = asyncio.Runner(loop_factory=self.loop_factory)

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


class Looped(Awaited):
    """The same in ofipy's loop."""

    loop_factory = staticmethod(ofipy.loop)


class AwaitedByMany(Awaited):
    """As many tasks as :data:`TASKS`, each with a tag and buffers of its own, which last as a peer's connections do."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._buffers = [self.make_buffers() for _ in range(TASKS)]

    def exchange(self, count: int) -> None:
        """Ping-pong of each task."""
        self._runner.run(self._exchange_all(count))

    def sample(self, count: int) -> Times:
        """Single round trips of all tasks together."""
        return Way.sample(self, count)

    async def _exchange_all(self, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            for number, (outgoing, incoming) in enumerate(self._buffers):
                group.create_task(self._exchange_one(count, outgoing, incoming, TAG_PING + number))

    async def _exchange_one(self, count: int, outgoing: Bytes, incoming: Bytes, tag: int) -> None:
        endpoint, peer = self.side.endpoint, self.side.peer
        send, receive = endpoint.tsend, endpoint.trecv_into
        for _ in range(count):
            if self.first:
                await send(outgoing, peer, tag=tag)
            await receive(incoming, peer, tag=tag)
            if not self.first:
                await send(outgoing, peer, tag=tag)


class LoopedByMany(AwaitedByMany):
    """The same in ofipy's loop."""

    loop_factory = staticmethod(ofipy.loop)
