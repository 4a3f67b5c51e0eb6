# SPDX-License-Identifier: BSD-3-Clause
"""What the modes of ofipy have in common."""

from abc import ABC, abstractmethod

from fabtests.compare.contender import Bytes, Times, new_buffer, read_all, time_each
from ofipy.pingpong.side import Side

__all__ = ["TAG_ACKNOWLEDGE", "StreamsInC", "Way"]

TAG_ACKNOWLEDGE = 8


class StreamsInC(ABC):
    """Windows in C, which times them itself; beside a :class:`Way`."""

    @abstractmethod
    def windows(self, window: int, count: int) -> Times:
        """As of :class:`~fabtests.compare.contender.Contender`."""

    def stream(self, window: int) -> None:
        """One call."""
        self.windows(window, 1)


class Way:
    """One mode at one size, on one side; a way has a ping-pong, a stream, or both.

    Parameters
    ----------
    side : Side
        That has met the other one.
    size : int
        Bytes of a message.
    """

    def __init__(self, side: Side, size: int) -> None:
        self.side = side
        self.first = side.first
        self.size = size
        self.outgoing: Bytes
        self.incoming: Bytes
        self.outgoing, self.incoming = self.make_buffers()

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """What is sent, and where it is received."""
        return new_buffer(self.size), new_buffer(self.size)

    def exchange(self, count: int) -> None:
        """As of :class:`~fabtests.compare.contender.Contender`."""
        raise NotImplementedError(f"{type(self).__name__} has no ping-pong")

    def sample(self, count: int) -> Times:
        """As of :class:`~fabtests.compare.contender.Contender`."""
        return time_each(self.exchange, count)

    def stream(self, window: int) -> None:
        """As of :class:`~fabtests.compare.contender.Contender`."""
        raise NotImplementedError(f"{type(self).__name__} has no stream")

    def settle(self) -> None:
        """As of :class:`~fabtests.compare.contender.Contender`."""

    reads = False
    """As of :class:`~fabtests.compare.contender.Contender`."""

    def look(self) -> None:
        """As of :class:`~fabtests.compare.contender.Contender`."""
        if self.reads:
            read_all(self.incoming)

    def close(self) -> None:
        """Give back what is not the endpoint's."""
