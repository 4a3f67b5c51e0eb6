# SPDX-License-Identifier: BSD-3-Clause
"""ofipy as a contender: one endpoint a side, and a way to use it for each mode."""

import asyncio
from time import perf_counter_ns

import numpy as np

import ofipy
from fabtests.base.pingpong import TAG_PING, PingPong
from fabtests.base.side import Side
from fabtests.compare.contender import Contender, Times, new_buffer, read_all

__all__ = ["Ofipy"]

TAG_ACKNOWLEDGE = 8
TAG_HANDLE = 9
SPINS = 1000  # looks at memory between two looks at the queue


class Ofipy(Contender):
    """Modes of a ping-pong: ``native blocking prepared await write-blocking``; of a stream: ``array domain``.

    And of a stream of writes: ``target-idle target-reads``.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    provider : str
        Provider by name.
    """

    distribution = "ofipy"

    def __init__(self, first: bool, *, provider: str) -> None:
        super().__init__(first)
        self._side = Side(first, provider=provider)
        self._runner = asyncio.Runner()
        self._prepared: tuple[int, str] | None = None
        self._byte = new_buffer(1)

    def offer(self) -> str:
        """The endpoint's address."""
        return self._side.offer()

    def meet(self, other: str) -> None:
        """Enter the other side's address."""
        self._side.meet(other)

    def prepare(self, size: int, mode: str) -> None:
        """Make buffers, and prepared operations where the mode has them."""
        if self._prepared == (size, mode):
            return
        self._prepared = size, mode
        self._mode = mode
        self._game: PingPong | None = None
        super().prepare(size, mode)
        if mode == "domain":
            self._allocate(size)
        elif mode.startswith(("target-", "write-")):
            self._lend(size)
        elif mode == "prepared":
            self._game = PingPong(self._side, size)
            self.outgoing, self.incoming = self._game.outgoing, self._game.incoming

    def _allocate(self, size: int) -> None:
        domain = self._side.endpoint.domain
        self.outgoing, self.incoming = domain.empty(size, np.uint8), domain.empty(size, np.uint8)
        self.outgoing.fill(1)
        self.incoming.fill(1)

    def _lend(self, size: int) -> None:
        """Allocate memory that the other side writes to, and swap the handles."""
        endpoint, peer = self._side.endpoint, self._side.peer
        self.incoming = endpoint.empty(size, np.uint8, access="local|remote_write")
        self.incoming.fill(1)
        self._turn = 0
        mine, other = bytes(endpoint.domain.region(self.incoming).remote), bytearray(64)
        got = endpoint.trecv_into(other, peer, tag=TAG_HANDLE)
        endpoint.tsend(mine, peer, tag=TAG_HANDLE).wait()
        self._remote = ofipy.RemoteRegion.from_bytes(other[: got.wait().length])

    def exchange(self, count: int) -> None:
        """Ping-pong in the mode prepared."""
        if self._game is not None:
            self._game.run(count)
        elif self._mode == "write-blocking":
            self._exchange_writing(count)
        elif self._mode == "native":
            self._measure(count, None)
        elif self._mode == "await":
            self._runner.run(self._exchange_awaiting(count, None))
        else:
            self._exchange_blocking(count)

    def sample(self, count: int) -> Times:
        """Nanoseconds of single round trips."""
        times = np.zeros(count, dtype=np.int64)
        if self._game is not None:
            return self._game.sample(count)
        if self._mode == "native":
            self._measure(count, times)
        elif self._mode == "await":
            self._runner.run(self._exchange_awaiting(count, times))
        else:
            return super().sample(count)
        return times

    def _measure(self, count: int, times: Times | None) -> None:
        ofipy.measure.pingpong(
            self._side.endpoint,
            self._side.peer,
            first=self.first,
            tag=TAG_PING,
            send=self.outgoing,
            receive=self.incoming,
            iterations=count,
            nanoseconds=times,
        )

    def _exchange_blocking(self, count: int) -> None:
        endpoint, peer = self._side.endpoint, self._side.peer
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

    def _exchange_writing(self, count: int) -> None:
        """Each side writes a number into the other's memory, which spins on it."""
        endpoint, peer, remote = self._side.endpoint, self._side.peer, self._remote
        write, progress = endpoint.write, endpoint.domain.progress
        source = endpoint.register(self.outgoing)
        out, landing = self.outgoing.data.cast("Q"), self.incoming.data.cast("Q")
        for turn in range(self._turn + 2, self._turn + count + 2):
            if self.first:
                out[0] = turn
                write(source, peer, remote).wait()
            while landing[0] != turn:
                for _ in range(SPINS):
                    if landing[0] == turn:
                        break
                else:
                    progress()
            if not self.first:
                out[0] = turn
                write(source, peer, remote).wait()
        self._turn += count
        source.close()

    async def _exchange_awaiting(self, count: int, times: Times | None) -> None:
        endpoint, peer = self._side.endpoint, self._side.peer
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

    def stream(self, window: int) -> None:
        """One window."""
        endpoint, peer = self._side.endpoint, self._side.peer
        if self._mode == "target-idle":
            if self.first:
                self._write(window)
            return
        if self._mode == "target-reads":
            self._write_to_reader(window)
            return
        if self.first:
            acknowledged = endpoint.trecv_into(self._byte, peer, tag=TAG_ACKNOWLEDGE)
            send, outgoing = endpoint.tsend, self.outgoing
            ofipy.wait_all([send(outgoing, peer, tag=TAG_PING) for _ in range(window)])
            acknowledged.wait()
        else:
            receive, incoming = endpoint.trecv_into, self.incoming
            ofipy.wait_all([receive(incoming, peer, tag=TAG_PING) for _ in range(window)])
            endpoint.tsend(self._byte, peer, tag=TAG_ACKNOWLEDGE).wait()

    def _write(self, window: int) -> None:
        write, peer, remote = self._side.endpoint.write, self._side.peer, self._remote
        outgoing = self.outgoing
        ofipy.wait_all([write(outgoing, peer, remote, complete="delivery") for _ in range(window)])

    def _write_to_reader(self, window: int) -> None:
        """Write, tell; the target reads all of it, then tells."""
        endpoint, peer = self._side.endpoint, self._side.peer
        if self.first:
            told = endpoint.trecv_into(self._byte, peer, tag=TAG_ACKNOWLEDGE)
            self._write(window)
            endpoint.tsend(self._byte, peer, tag=TAG_PING).wait()
            told.wait()
        else:
            endpoint.trecv_into(self._byte, peer, tag=TAG_PING).wait()
            read_all(self.incoming)
            endpoint.tsend(self._byte, peer, tag=TAG_ACKNOWLEDGE).wait()

    def close(self) -> None:
        """Close the endpoint."""
        self._runner.close()
        self._side.close()
