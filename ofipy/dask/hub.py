# SPDX-License-Identifier: BSD-3-Clause
"""An endpoint that connections share, and what is left of them when they have ended.

A connection that ends leaves two things: what it has sent and is still on its way, and what the other side has sent
and nobody reads. Both are looked after here.

The endpoint makes progress while the loop waits for one of its requests, and not otherwise. Most of the time somebody
reads; what has to go on when nobody does is awaited by a task of the hub's, one at a time, since one makes all go on.
"""

import asyncio
import random
import time
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import dask.config

import ofipy
from ofipy._base.errors import Again, FabricError
from ofipy._completion.aio import Poller
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy.dask import wire
from ofipy.dask.memory import FrameMemory

__all__ = ["Hub"]

_PATIENCE = 30.0  # seconds for the goodbye of the other side

_of_loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = weakref.WeakKeyDictionary()


@dataclass
class _Ended:
    """A connection that this side has ended."""

    peer: Peer
    number: int
    far_number: int
    sent: list[Any]  # requests
    reading: Any = None  # the request for the next head; None: the other side has said goodbye
    frames: list[Any] = field(default_factory=list)
    said: bool = False
    until: float = 0.0


class Hub:
    """An endpoint, and the numbers of its connections.

    Parameters
    ----------
    endpoint : Endpoint
        Closed with the last of those who use it, and with the loop that runs.
    """

    def __init__(self, endpoint: Endpoint[Any]) -> None:
        self.endpoint = endpoint
        self.memory = FrameMemory()
        self._next = random.randrange(wire.NUMBERS)
        self._users = 0
        self._ended: list[_Ended] = []
        self._under_way: deque[Any] = deque()  # requests that the task awaits
        self._task: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        self._loop = weakref.ref(loop)
        self._with_loop = weakref.finalize(loop, endpoint.close)
        # A cluster has more processes than its host has cores; who polls keeps a core from the others.
        Poller.of(loop).longest_spin = 0

    @classmethod
    def open(cls, service: int | None = None, *, node: str | None = None) -> "Hub":
        """One with an endpoint of its own; arguments as of :func:`ofipy.open`.

        Without a helper thread, which would wake up beside the loop with every message.
        """
        chosen = dask.config.get("distributed.comm.ofi.provider")
        return cls(ofipy.open(service, provider=chosen, node=node, progress="manual"))

    @classmethod
    def of_loop(cls) -> "Hub":
        """The one by which the running loop calls others; it does not listen."""
        loop = asyncio.get_running_loop()
        hub = _of_loops.get(loop)
        if hub is None or hub.endpoint.closed:
            hub = cls.open()
            hub.take()  # for the loop
            _of_loops[loop] = hub
        return hub

    def take(self) -> int:
        """Begin to use it. Returns the number of the connection."""
        self._users += 1
        self._next = (self._next + 1) % wire.NUMBERS
        return self._next

    def let_go(self) -> None:
        """End what :meth:`take` began."""
        self._users -= 1
        if not self._users:
            self._with_loop()

    def see_to(self, request: Any) -> None:
        """Have it go on until it has finished, whoever else waits; of no effect outside of the hub's loop."""
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is self._loop():
                self._under_way.append(request)
                if self._task is None or self._task.done():
                    self._task = asyncio.create_task(self._await_all())

    async def _await_all(self) -> None:
        while self._under_way:
            with suppress(FabricError):  # its connection's affair
                await self._under_way[0]
            self._under_way.popleft()
            self.tidy()

    def end(self, peer: Peer, number: int, far_number: int, sent: list[Any], said_goodbye: bool) -> None:
        """Take over what is left of a connection.

        Parameters
        ----------
        peer, number, far_number
            Whose.
        sent : list of Request
            What may be on its way.
        said_goodbye : bool
            Whether the other side has.
        """
        ended = _Ended(peer, number, far_number, sent, until=time.monotonic() + _PATIENCE)
        with suppress(FabricError):
            if not said_goodbye:
                ended.reading = self._read(ended)
        self._ended.append(ended)
        self.tidy()

    def tidy(self) -> None:
        """Look after what is left of connections that have ended."""
        if self.endpoint.closed:
            self._ended.clear()
        for ended in self._ended[:]:
            if self._is_over(ended):
                self._ended.remove(ended)
                self.let_go()

    def _is_over(self, ended: _Ended) -> bool:
        try:
            if not ended.said:
                tag = wire.tag(wire.Kind.HEAD, ended.far_number)
                goodbye = self.endpoint.tsend(wire.GOODBYE, ended.peer, tag=tag)
                ended.said = True
                if not goodbye.done:
                    ended.sent.append(goodbye)
                    self.see_to(goodbye)
            while ended.reading is not None and ended.reading.done:
                self._discard(ended)
            ended.sent = [each for each in ended.sent if not each.done]
            ended.frames = [each for each in ended.frames if not each.done]
            if ended.reading is None and not ended.sent and not ended.frames:
                return True
        except Again:
            pass
        except FabricError:  # the other side is gone
            return True
        if time.monotonic() < ended.until:
            return False
        for each in (ended.reading, *ended.frames):
            if each is not None:
                each.cancel()
        return True

    def _read(self, ended: _Ended) -> Any:
        request = self.endpoint.trecv(ended.peer, tag=wire.tag(wire.Kind.HEAD, ended.number))
        self.see_to(request)
        return request

    def _discard(self, ended: _Ended) -> None:
        head = wire.read_head(memoryview(ended.reading.wait().data))
        if head is None:
            ended.reading = None
            return
        tag = wire.tag(wire.Kind.FRAMES, ended.number)
        ended.frames.extend(self.endpoint.trecv(ended.peer, tag=tag) for _ in head.following)
        ended.reading = self._read(ended)
