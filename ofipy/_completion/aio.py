# SPDX-License-Identifier: BSD-3-Clause
"""Requests and asyncio.

The problem: waking up costs ten times what a neighbour's answer takes, and of what wakes a loop a completion queue
is only one of many descriptors. So each loop has one poller for all queues that its tasks wait for. While something
comes it polls them, and lets the loop look at its other descriptors in between; when nothing has come for a moment it
arms the queues and lets the loop sleep on their descriptors. What came is taken for all at once, and all tasks go on in
one callback. What a task waits with is C (``ofipy/requests/await/waiter.c``), no future.

A loop with a :class:`~ofipy.Selector` polls in its selector, once a turn. Any other one has to turn in order to poll.
"""

import asyncio
import threading
import time
from contextlib import suppress

from ofipy._base.errors import FabricError
from ofipy._completion.selector import Selector
from ofipy._requests import MISSES_ENOUGH, Hold, Notices, PollerBase

__all__ = ["Poller", "Watch"]

# Seconds between two looks while somebody's completions lie unread in the queue, which then cannot be armed.
_UNREAD_PERIOD = 0.001

# Nanoseconds of polling: longer than a peer takes to wake up and to answer, or two that sleep would never meet awake.
_SPIN = 100_000
# Sleeps in a row, where polling does not pay, before it is tried again.
_TRIAL_PERIOD = 16


class Poller(PollerBase):
    """Polls for the tasks of one event loop, and wakes it."""

    def __new__(cls, loop: asyncio.AbstractEventLoop) -> "Poller":
        selector = getattr(loop, "_selector", None)
        own = isinstance(selector, Selector)
        # Whether the loop has something else to do. Of others than asyncio's it cannot be told.
        ready = getattr(loop, "_ready", None) if isinstance(loop, asyncio.BaseEventLoop) else None
        poller = super().__new__(cls, loop, ready, asyncio.CancelledError, not own)
        if isinstance(selector, Selector):
            selector.poller = poller
        loop._ofipy_poller = poller  # type: ignore[attr-defined]
        return poller

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ready = getattr(loop, "_ready", ()) if isinstance(loop, asyncio.BaseEventLoop) else ()
        self._until = 0  # ns: when polling without anything ends
        self._timer: asyncio.TimerHandle | None = None
        self.longest_spin = _SPIN

    def schedule(self) -> None:
        """Have the loop call `turn`."""
        if self.scheduled:
            return
        self.scheduled = True
        try:
            self._schedule()
        except BaseException:
            self.scheduled = False
            raise

    def _schedule(self) -> None:
        # The news may be another thread's.
        if asyncio._get_running_loop() is self._loop:
            self._loop.call_soon(self.turn)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.turn)

    def turn(self, progress: bool | Notices = False) -> None:
        """Let all go on that have news, after a look at all queues (True) or at one; a callback of the loop."""
        self.scheduled = False
        try:
            self.run(progress)
        finally:
            if self.plain and self.waiting and not self.scheduled:
                try:
                    self._poll_or_sleep()
                except BaseException:
                    # There may have been no memory for it. Nothing else would make the loop look again.
                    self.schedule()
                    raise

    def _poll_or_sleep(self) -> None:
        now = time.monotonic_ns()
        if self.active and (duration := self.start_spin()):
            self._until = now + duration
        if now < self._until:
            if not self._ready:
                self.spin(Selector.SLICE)
            self.schedule()
            return
        if self._until:
            self._until = 0
            self.misses += 1
        pause = self.arm()
        if pause == 0:
            self.schedule()
        elif pause is not None and self._timer is None:
            self._timer = self._loop.call_later(pause, self._look)

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> "Poller":
        """The one of a loop."""
        found: Poller | None = getattr(loop, "_ofipy_poller", None)
        return cls(loop) if found is None else found

    def start_spin(self) -> int:
        """How long to poll before sleeping (ns). Where that met nothing a few times it is tried now and then only."""
        self.active = False
        if self.misses >= MISSES_ENOUGH:
            self.misses += 1
            if self.misses % _TRIAL_PERIOD:
                return 0
        return self.longest_spin

    def _look(self) -> None:
        self._timer = None
        self.turn(True)

    def arm(self) -> float | None:
        """Have the queues wake the loop: seconds until it has to look by itself, 0: now, None: never."""
        pause, collected = None, False
        for notices in self.sources():
            if notices not in self.watched:
                self._watch(notices)
        # What keeps them from being armed is news, or the program's own to read, so that only looking can tell.
        for notices in self.arm_all():
            if notices.collect():
                collected = True
            else:
                pause = _UNREAD_PERIOD
                # For other threads that sleep on its descriptor it stays readable as long as something is unread.
                self.forget(notices)
        # Of a message that is only now on its way into memory the news lets nobody go on: arm once more.
        return 0 if self.scheduled or collected else pause

    def _watch(self, notices: Notices) -> None:
        queue = notices.queue()
        # Whoever closes one wakes those who wait.
        with suppress(FabricError):
            if queue is not None:
                descriptor = queue.fileno()
                self.watched[notices] = descriptor, queue
                try:
                    queue._pollers.add(self)
                    self._loop.add_reader(descriptor, self._readable, notices)
                except BaseException:
                    # What counts as watched is not watched again.
                    self.forget(notices)
                    raise

    def _readable(self, notices: Notices) -> None:
        if notices in self.sources():
            # The other queues are armed as before.
            self.turn(notices)
        else:
            # Nobody waits, and without a look it may stay readable: stop watching.
            self.forget(notices)
            self.turn()

    def forget(self, notices: Notices) -> None:
        """Watch its queue's descriptor no longer."""
        descriptor, _ = self.watched.pop(notices, (-1, None))
        if descriptor >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(descriptor)


class Watch:
    """Watches a descriptor in one event loop, for whoever waits for it to become readable."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._loop = loop
        self._fd = fd  # -1 once stopped
        self._thread = threading.get_ident()
        self._lock = threading.Lock()  # the descriptor may be closed by another thread
        self._waiting: set[asyncio.Future[None]] = set()

    @classmethod
    def of(cls, watches: "dict[int, Watch]", fd: int) -> "Watch":
        """The one of the running loop."""
        loop = asyncio.get_running_loop()
        watch = watches.get(id(loop))
        # An id may be that of a loop which is gone.
        if watch is None or watch._loop is not loop:
            watch = watches[id(loop)] = cls(loop, fd)
        return watch

    async def readable(self) -> None:
        """Return when the descriptor is readable, or soon once it is no longer watched."""
        future = self._loop.create_future()
        if not self._enter(future):
            # Whoever closes it has nearly done so, and then the object says it.
            await asyncio.sleep(_UNREAD_PERIOD)
            return
        try:
            await future
        finally:
            self._leave(future)

    def _enter(self, future: "asyncio.Future[None]") -> bool:
        with Hold(self._lock):
            if self._fd >= 0:
                self._waiting.add(future)
                self._loop.add_reader(self._fd, self._wake)
            return self._fd >= 0

    def _leave(self, future: "asyncio.Future[None]") -> None:
        with Hold(self._lock):
            self._waiting.discard(future)
            if not self._waiting and self._fd >= 0:
                self._loop.remove_reader(self._fd)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        """The descriptor is about to be closed: let everybody go."""
        with Hold(self._lock):
            fd, self._fd = self._fd, -1  # its number may soon be another one's
            if fd < 0 or not self._waiting or self._loop.is_closed():
                return
            self._loop.remove_reader(fd)
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            self._loop.call_soon_threadsafe(self._wake)
