# SPDX-License-Identifier: BSD-3-Clause
"""Fetch-adds on a number of the other side, which does nothing meanwhile; and writes of it, beside them."""

from collections.abc import Callable
from functools import partial

import numpy as np

import ofipy
from fabtests.compare.contender import Bytes, TimedInC, Times, new_buffer
from fabtests.compare.ways.writes import Writing
from ofipy.pingpong.side import Side

__all__ = ["AddBlocking", "AddNative", "AddPrepared", "WriteDelivered"]


class Lent(Writing):
    """On a number in memory of ``domain.empty``; an exchange is one operation of the first side."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._step = self.make_step()

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """The number that is lent may be read, too."""
        incoming = self.side.endpoint.empty(self.size, np.uint8, access="local|remote_read|remote_write")
        incoming.fill(0)
        return new_buffer(self.size), incoming

    def make_step(self) -> Callable[[], object]:
        """What starts one operation and waits for it."""
        raise NotImplementedError

    def exchange(self, count: int) -> None:
        """So many operations."""
        if self.first:
            step = self._step
            for _ in range(count):
                step()


class AddBlocking(Lent):
    """``fetch_atomic(array, …, into=array).wait()``."""

    def make_step(self) -> Callable[[], object]:
        """What starts one operation and waits for it."""
        one, old = np.ones(1, np.uint64), np.zeros(1, np.uint64)
        add = partial(
            self.side.endpoint.fetch_atomic, one, self.side.peer, self.remote, op=ofipy.AtomicOp.SUM, into=old
        )
        return lambda: add().wait()


class AddPrepared(Lent):
    """The same, prepared once."""

    def make_step(self) -> Callable[[], object]:
        """What starts it again and waits for it."""
        one, old = np.ones(1, np.uint64), np.zeros(1, np.uint64)
        prepared = self.side.endpoint.prepare_fetch_atomic(
            one, self.side.peer, self.remote, op=ofipy.AtomicOp.SUM, into=old
        )
        start, wait = ofipy.start, prepared.wait

        def step() -> None:
            start(prepared)
            wait()

        return step


class WriteDelivered(Lent):
    """``write(array, …, complete="delivery").wait()``."""

    def make_step(self) -> Callable[[], object]:
        """What starts one operation and waits for it."""
        one = np.ones(1, np.uint64)
        write = partial(self.side.endpoint.write, one, self.side.peer, self.remote, complete="delivery")
        return lambda: write().wait()


class AddNative(TimedInC, Writing):
    """The loop in C, with a completion for each."""

    make_buffers = Lent.make_buffers

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
        if self.first:
            ofipy.measure.fetch_add(
                self.side.endpoint, self.side.peer, self.remote, iterations=count, nanoseconds=times
            )
