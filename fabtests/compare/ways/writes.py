# SPDX-License-Identifier: BSD-3-Clause
"""Writes into the other side's memory."""

import numpy as np

import ofipy
from fabtests.base.pingpong import TAG_PING
from fabtests.base.side import Side
from fabtests.compare.contender import Bytes, Times, new_buffer, read_all
from fabtests.compare.ways.way import TAG_ACKNOWLEDGE, Way

__all__ = ["TargetIdle", "TargetReads", "WriteBlocking", "WriteNative", "WritePrepared"]

TAG_HANDLE = 9
HANDLE_BYTES = 64  # more than any handle has
SPINS = 1000  # looks at memory between two looks at the queue


class Writing(Way):
    """Out of an ordinary array into memory of ``domain.empty`` that the other side has lent."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self.remote = self._swap_handles()

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """The target's pages are there before the first write; numbers that are written begin above 0."""
        incoming = self.side.endpoint.empty(self.size, np.uint8, access="local|remote_write")
        outgoing = new_buffer(self.size)
        for buffer in (incoming, outgoing):
            buffer.fill(0)
        return outgoing, incoming

    def _swap_handles(self) -> ofipy.RemoteRegion:
        endpoint, peer = self.side.endpoint, self.side.peer
        mine, other = bytes(endpoint.domain.region(self.incoming).remote), bytearray(HANDLE_BYTES)
        got = endpoint.trecv_into(other, peer, tag=TAG_HANDLE)
        endpoint.tsend(mine, peer, tag=TAG_HANDLE).wait()
        return ofipy.RemoteRegion.from_bytes(other[: got.wait().length])

    def write(self, window: int) -> None:
        """Write so many times, and wait until all is there."""
        write, peer, remote, outgoing = self.side.endpoint.write, self.side.peer, self.remote, self.outgoing
        ofipy.wait_all([write(outgoing, peer, remote, complete="delivery") for _ in range(window)])


class TargetIdle(Writing):
    """The target does nothing; delivery of the window takes the place of an acknowledgement."""

    def stream(self, window: int) -> None:
        """One window."""
        if self.first:
            self.write(window)


class TargetReads(Writing):
    """The target is told, reads every byte, and tells."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._byte = new_buffer(1)

    def stream(self, window: int) -> None:
        """One window."""
        endpoint, peer = self.side.endpoint, self.side.peer
        if self.first:
            told = endpoint.trecv_into(self._byte, peer, tag=TAG_ACKNOWLEDGE)
            self.write(window)
            endpoint.tsend(self._byte, peer, tag=TAG_PING).wait()
            told.wait()
        else:
            endpoint.trecv_into(self._byte, peer, tag=TAG_PING).wait()
            read_all(self.incoming)
            endpoint.tsend(self._byte, peer, tag=TAG_ACKNOWLEDGE).wait()


class WriteNative(Writing):
    """Ping-pong: each side writes a number into the other's memory, which spins on it; the loop in C."""

    def exchange(self, count: int) -> None:
        """One call."""
        self._measure(count, None)

    def sample(self, count: int) -> Times:
        """Timed in C."""
        times = np.zeros(count, dtype=np.int64)
        self._measure(count, times)
        return times

    def _measure(self, count: int, times: Times | None) -> None:
        ofipy.measure.write(
            self.side.endpoint,
            self.side.peer,
            self.remote,
            first=self.first,
            send=self.outgoing,
            landing=self.incoming,
            iterations=count,
            nanoseconds=times,
        )


class WriteBlocking(Writing):
    """The same in Python, ``write(region, …).wait()``."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self.source = side.endpoint.register(self.outgoing)
        self._turn = 1

    def write_once(self) -> None:
        """Write what was put into the buffer."""
        self.side.endpoint.write(self.source, self.side.peer, self.remote).wait()

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        write, progress = self.write_once, self.side.endpoint.domain.progress
        out, landing = self.outgoing.data.cast("Q"), self.incoming.data.cast("Q")
        for turn in range(self._turn, self._turn + count):
            if self.first:
                out[0] = turn
                write()
            while landing[0] != turn:
                for _ in range(SPINS):
                    if landing[0] == turn:
                        break
                else:
                    progress()
            if not self.first:
                out[0] = turn
                write()
        self._turn += count

    def close(self) -> None:
        """Close the region."""
        self.source.close()


class WritePrepared(WriteBlocking):
    """The same with a write that was prepared once."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._write = side.endpoint.prepare_write(self.source, side.peer, self.remote)

    def write_once(self) -> None:
        """Start it again."""
        ofipy.start(self._write)
        self._write.wait()
