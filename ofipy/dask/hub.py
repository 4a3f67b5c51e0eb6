# SPDX-License-Identifier: BSD-3-Clause
"""An endpoint that connections share, and what is left of them when they have ended.

A connection that ends leaves two things: what it has sent and is still on its way, and what the other side has sent
and nobody reads. Both are looked after here.

The endpoint makes progress while the loop waits for one of its requests, and not otherwise. Most of the time somebody
reads; what has to go on when nobody does is awaited by a task of the hub's, one at a time, since one makes all go on.

A connection may end in any thread: :meth:`OFI.abort` is called from several, and the garbage collector runs in each.
What ends has one owner all the same, the thread of the loop. Other threads append what is to be done, and the loop does
it. A loop that does not run does nothing; then the thread that appends works off what was appended, unless another one
does so already.
"""

import asyncio
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import dask.config

import ofipy
from ofipy._base.binding import failure
from ofipy._base.errors import Again, Canceled, FabricError
from ofipy._base.flags import EndpointType
from ofipy._completion.aio import Poller
from ofipy._completion.request import Request
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._requests import Hold
from ofipy.dask import wire
from ofipy.dask.memory import FrameMemory

__all__ = ["Ended", "Hub"]

_PATIENCE = 30.0  # seconds for the goodbye of the other side

_of_loops: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = weakref.WeakKeyDictionary()


@dataclass(eq=False, kw_only=True)
class Ended:
    """A connection that this side has ended, and what is left of it; the hub's, once :meth:`Hub.end` has it."""

    peer: Peer = field(kw_only=False)
    number: int = field(kw_only=False)
    far_number: int = field(kw_only=False)
    incarnation: int | None = None
    """Of the peer, that the connection is bound to."""
    sent: list[Any]
    """Requests of what may be on its way."""
    owed: int = 0
    """Messages that the last head promised and that were not sent."""
    reading: Any = None
    """The request for the next head, maybe cancelled."""
    frames: list[Any] = field(default_factory=list)
    """Requests for what the last head promised, maybe cancelled."""
    said_goodbye: bool = False
    """The other side."""
    said: bool = False
    """This side."""
    until: float = field(default_factory=lambda: time.monotonic() + _PATIENCE)


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
        self._ended: list[Ended] = []  # the owner's alone, as whatever the actions change
        self._actions: deque[Callable[[], None]] = deque()  # any thread appends; the owner takes
        self._owned = threading.Lock()  # by the owner while it acts; nobody waits for it
        self._under_way: deque[Any] = deque()  # requests that the task awaits
        self._task: asyncio.Task[None] | None = None
        self._waiting: set[asyncio.Task[None]] = set()  # for receives of what has ended
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

    @property
    def binds(self) -> bool:
        """Whether its transport numbers the incarnations of peers, and connections are bound to them."""
        info = self.endpoint.info
        return info.ep_type is EndpointType.RDM and not info.offloads_matching

    def incarnation(self, peer: Peer) -> int | None:
        """What a connection to the peer is bound to from now on."""
        return self.endpoint.incarnation(peer) if self.binds else None

    async def reach(self, peer: Peer) -> None:
        """Wait until the peer is up; the transport connects if need be."""
        request = self._ask(peer)
        try:
            await request
        finally:
            request.cancel()

    def _ask(self, peer: Peer) -> Request:
        request = self.endpoint._poster.reach(self.endpoint, Request, int(peer), 0)
        if isinstance(request, int):
            raise failure(-request, operation="connect", provider=self.endpoint.provider)
        return request  # type: ignore[no-any-return]

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
        if self._is_here():
            self._under_way.append(request)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._await_all())

    async def _await_all(self) -> None:
        try:
            while self._under_way:
                with suppress(FabricError):  # its connection's affair
                    await self._under_way[0]
                self._under_way.popleft()
                self.tidy()
        finally:
            # A task refers to its loop, and the hub of a loop must not keep that alive.
            self._task = None

    def _tidy_after(self, request: Any) -> None:
        """Go on as soon as a receive has finished: sends that are under way may wait for the other side."""
        if self._is_here():
            waiting = asyncio.create_task(self._await_and_tidy(request))
            self._waiting.add(waiting)
            waiting.add_done_callback(self._waiting.discard)

    async def _await_and_tidy(self, request: Any) -> None:
        with suppress(FabricError):
            await request
        self.tidy()

    def end(self, ended: Ended) -> None:
        """Take over what is left of a connection; from any thread."""

        def take_over() -> None:
            self._ended.append(ended)
            # It was too late to cancel what still runs, and nobody awaits it any more.
            for request in (ended.reading, *ended.frames):
                if request is not None and not request.done:
                    self._tidy_after(request)
            self._look_after_ended()

        self.have_done(take_over)

    def tidy(self) -> None:
        """Look after what is left of connections that have ended; from any thread."""
        if self._ended:
            self.have_done(self._look_after_ended)

    def have_done(self, action: Callable[[], None]) -> None:
        """Have the owner act, after all that it was asked for before; it may have done so when this returns."""
        self._actions.append(action)
        loop = self._loop()
        if loop is not None and loop.is_running() and not self._is_here():
            with suppress(RuntimeError):  # closed in between
                loop.call_soon_threadsafe(self._act)
                return
        self._act()

    def _act(self) -> None:
        # Looks again after it has let go: who appended in between may have found it taken.
        while self._actions:
            with Hold(self._owned, blocking=False) as is_owner:
                if not is_owner:
                    return
                while self._actions:
                    self._actions.popleft()()

    def _is_here(self) -> bool:
        """Whether the hub's loop runs in this thread."""
        with suppress(RuntimeError):  # none does
            return asyncio.get_running_loop() is self._loop()
        return False

    def _look_after_ended(self) -> None:
        if self.endpoint.closed:
            self._ended.clear()
        for ended in self._ended[:]:
            if self._is_over(ended):
                self._ended.remove(ended)
                self.let_go()

    def _is_over(self, ended: Ended) -> bool:
        try:
            # Without room this side still receives: the other one may wait for that, with a full queue of its own.
            with suppress(Again):
                self._say_goodbye(ended)
            self._discard(ended)
            ended.sent = [each for each in ended.sent if not each.done]
            if ended.said and ended.said_goodbye and not ended.sent and not ended.frames:
                return True
        except Again:
            pass
        except FabricError:  # the other side is gone, or the way there
            self._call_again(ended.peer)
            return True
        if time.monotonic() < ended.until:
            return False
        for each in (ended.reading, *ended.frames):
            if each is not None:
                each.cancel()
        return True

    def _call_again(self, peer: Peer) -> None:
        """Connect once more, so that a side whose end of a broken connection is silent hears that it has ended."""
        if self.binds and not self.endpoint.closed:
            with suppress(FabricError):
                self.see_to(self._ask(peer))

    def _say_goodbye(self, ended: Ended) -> None:
        while ended.owed:  # nothing, which the other side takes for the end within a message
            self._send(ended, b"", wire.Kind.FRAMES)
            ended.owed -= 1
        if not ended.said:
            self._send(ended, wire.GOODBYE, wire.Kind.HEAD)
            ended.said = True

    def _send(self, ended: Ended, piece: bytes, kind: wire.Kind) -> None:
        request = self.endpoint.tsend(
            piece, ended.peer, tag=wire.tag(kind, ended.far_number), incarnation=ended.incarnation
        )
        if not request.done:
            ended.sent.append(request)
            self.see_to(request)

    def _discard(self, ended: Ended) -> None:
        """Receive what the other side has sent until its goodbye."""
        ended.frames = [
            self._receive(ended, wire.Kind.FRAMES) if _is_canceled(each) else each
            for each in ended.frames
            if not each.done or _is_canceled(each)
        ]
        while not ended.said_goodbye:
            if ended.reading is None or _is_canceled(ended.reading):
                ended.reading = self._receive(ended, wire.Kind.HEAD)
            if not ended.reading.done:
                return
            head = wire.read_head(memoryview(ended.reading.wait().data))
            ended.reading = None
            if head is None:
                ended.said_goodbye = True
            else:
                ended.frames.extend(self._receive(ended, wire.Kind.FRAMES) for _ in head.following)

    def _receive(self, ended: Ended, kind: wire.Kind) -> Any:
        request = self.endpoint.trecv(
            ended.peer, tag=wire.tag(kind, ended.number), incarnation=ended.incarnation
        )
        self._tidy_after(request)
        return request


def _is_canceled(request: Any) -> bool:
    if not request.done:
        return False
    try:
        request.wait()
    except Canceled:
        return True
    except FabricError:
        pass
    return False
