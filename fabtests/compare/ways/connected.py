# SPDX-License-Identifier: BSD-3-Clause
"""What a device does for connected endpoints, in loops in C: messages without tags, writes, reads.

As perftest does it: out of and into memory that is registered once, and each with a completion of its own.
"""

import numpy as np

import ofipy
from fabtests.compare.contender import Bytes, TimedInC, Times
from fabtests.compare.ways.way import Way
from ofipy.pingpong.side import Side

__all__ = ["NativeRead", "NativeSend", "NativeWrite"]

HANDLE_BYTES = 64  # more than any handle has
DEPTH = 64  # writes or reads at once in a window


class NativeSend(TimedInC, Way):
    """Ping-pong of messages."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._regions = [side.endpoint.register(each) for each in (self.outgoing, self.incoming)]

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
        send, receive = self._regions
        ofipy.measure.pingpong(
            self.side.endpoint,
            self.side.peer,
            first=self.first,
            send=send,
            receive=receive,
            iterations=count,
            tag=None,
            complete="transmit",
            nanoseconds=times,
        )

    def close(self) -> None:
        """Close the regions."""
        for each in self._regions:
            each.close()


class Remote(TimedInC, Way):
    """Each side lends its incoming buffer to the other one."""

    access: str
    """What the other side may do with it."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._regions = [
            side.endpoint.register(self.outgoing),
            side.endpoint.register(self.incoming, access=f"recv|read|{self.access}"),
        ]
        self.remote = self._swap_handles()

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """Numbers that are written begin above 0."""
        return np.zeros(self.size, np.uint8), np.zeros(self.size, np.uint8)

    def _swap_handles(self) -> ofipy.RemoteRegion:
        endpoint, other = self.side.endpoint, bytearray(HANDLE_BYTES)
        got = endpoint.recv_into(other, self.side.peer)
        endpoint.send(bytes(self._regions[1].remote), self.side.peer).wait()
        return ofipy.RemoteRegion.from_bytes(other[: got.wait().length])

    def close(self) -> None:
        """Close the regions."""
        for each in self._regions:
            each.close()


class NativeWrite(Remote):
    """Ping-pong of writes on which the other side spins; windows of writes into memory of a side that is idle."""

    access = "remote_write"

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
        ofipy.measure.write(
            self.side.endpoint,
            self.side.peer,
            self.remote,
            first=self.first,
            send=self._regions[0],
            landing=self.incoming,
            iterations=count,
            complete="transmit",
            nanoseconds=times,
        )

    def stream(self, window: int) -> None:
        """One window."""
        if self.first:
            ofipy.measure.rma(
                self.side.endpoint,
                self.side.peer,
                self.remote,
                reads=False,
                local=self._regions[0],
                iterations=window,
                depth=DEPTH,
            )


class NativeRead(Remote):
    """Reads, of which the other side hears nothing: one after the other, and windows."""

    access = "remote_read"

    def measure(self, count: int, times: Times | None, depth: int = 1) -> None:
        """One call."""
        if self.first:
            ofipy.measure.rma(
                self.side.endpoint,
                self.side.peer,
                self.remote,
                reads=True,
                local=self._regions[1],
                iterations=count,
                depth=depth,
                nanoseconds=times,
            )

    def stream(self, window: int) -> None:
        """One window."""
        self.measure(window, None, DEPTH)
