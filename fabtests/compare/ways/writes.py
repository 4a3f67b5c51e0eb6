# SPDX-License-Identifier: BSD-3-Clause
"""Writes into the other side's memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import ofipy
from fabtests.compare.contender import Bytes, TimedInC, Times, new_buffer, read_all
from fabtests.compare.ways.way import Way
from ofipy.pingpong.side import Side

__all__ = [
    "TargetIdle",
    "TargetReads",
    "WriteBatch",
    "WriteBlocking",
    "WriteNative",
    "WritePrepared",
    "Writing",
]

TAG_HANDLE = 9
HANDLE_BYTES = 64  # more than any handle has
WORD_BYTES = 8
SPINS = 1000  # looks at memory between two looks at the queue


class Writing(Way):
    """Out of an ordinary array into memory of ``domain.empty`` that the other side has lent."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self.remote = self._swap_handles()

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """The target's pages are there before the first write; numbers that are written begin above 0.

        The bytes behind the number are not 0: an AMD EPYC executes non-temporal stores of zeros twice as fast as
        others.
        """
        incoming = self.side.endpoint.empty(self.size, np.uint8, access="local|remote_write")
        incoming.fill(0)
        outgoing = new_buffer(self.size)
        outgoing[:8] = 0
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


class WriteBatch(Writing):
    """Records, a window with one post; the target does nothing, and the last one's delivery ends the window."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._source = side.endpoint.register(self.outgoing)
        self._done = side.endpoint.cq.batch(1)
        self._records = self._make_records(1)

    def _make_records(self, window: int) -> np.ndarray[Any, np.dtype[np.void]]:
        records = self.side.endpoint.domain.operations(window)
        records["op"], records["peer"] = ofipy.Op.WRITE, self.side.peer
        records["region"], records["offset"] = self._source.id, self._source.offset
        records["length"] = self.size
        records["remote_key"], records["remote_offset"] = self.remote.key, self.remote.offset
        records["flags"] = ofipy.Flag.INJECT.value
        records["flags"][-1] = ofipy.Flag.DELIVERY_COMPLETE.value
        return records

    def stream(self, window: int) -> None:
        """One window."""
        if not self.first:
            return
        if self._records.size != window:
            self._records = self._make_records(window)
        endpoint, begun = self.side.endpoint, 0
        while begun < window:
            try:
                begun += endpoint.post(self._records[begun:] if begun else self._records)
            except ofipy.Again:
                endpoint.domain.progress()
        rows = self._done.wait(min=1)
        if rows["error"][0]:
            raise endpoint.cq.exception(rows[0]) or AssertionError(rows[0])

    def close(self) -> None:
        """Close the region."""
        self._source.close()


class WriteNative(TimedInC, Writing):
    """Ping-pong: each side writes a number into the other's memory, which spins on it; the loop in C."""

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
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
        self._source = side.endpoint.register(self.outgoing)
        self._out, self._landing = self.outgoing.data.cast("Q"), self.incoming.data.cast("Q")
        self._turn = 0
        self._write = self.make_write(self._source)

    def make_write(self, source: ofipy.Region) -> Callable[[], ofipy.Request]:
        """What starts a write of the word."""
        return partial(self.side.endpoint.write, source, self.side.peer, self.remote)

    def take_turn(self) -> int:
        """The number of the next round trip."""
        self._turn += 1
        return self._turn

    def say(self, turn: int) -> None:
        """Write the number into the other side's memory."""
        self._out[0] = turn
        self._write().wait()

    def hear(self, turn: int) -> None:
        """Spin until the other side has written it."""
        landing = self._landing
        while landing[0] != turn:
            for _ in range(SPINS):
                if landing[0] == turn:
                    return
            self.side.endpoint.domain.progress()

    def exchange(self, count: int) -> None:
        """Ping-pong: :meth:`say` and the first turns of :meth:`hear` are written out, for their calls would count."""
        write, hear, out, landing, first = self._write, self.hear, self._out, self._landing, self.first
        for turn in range(self._turn + 1, self._turn + count + 1):
            if first:
                out[0] = turn
                write().wait()
            for _ in range(SPINS):
                if landing[0] == turn:
                    break
            else:
                hear(turn)
            if not first:
                out[0] = turn
                write().wait()
        self._turn += count

    def close(self) -> None:
        """Close the region."""
        self._source.close()


class WritePrepared(WriteBlocking):
    """The same with a write that was prepared once."""

    def make_write(self, source: ofipy.Region) -> Callable[[], ofipy.Request]:
        """What starts it again."""
        prepared = self.side.endpoint.prepare_write(source, self.side.peer, self.remote)
        start = ofipy.start

        def write() -> ofipy.Request:
            start(prepared)
            return prepared

        return write


class TargetReads(TargetIdle):
    """After each window the target reads every byte, so that the next one meets what its caches hold.

    It is told, and tells, by words in memory on which both spin, as ``attach`` does.
    """

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._words = WriteBlocking(side, WORD_BYTES)

    def settle(self) -> None:
        """The target reads."""
        words, turn = self._words, self._words.take_turn()
        if self.first:
            words.say(turn)
            words.hear(turn)
        else:
            words.hear(turn)
            read_all(self.incoming)
            words.say(turn)

    def close(self) -> None:
        """Close the words."""
        self._words.close()
