# SPDX-License-Identifier: BSD-3-Clause
"""Requests and asyncio.

The problem: a completion queue has one descriptor for everything, and its readiness may be told once. So
there is one reader for each event loop and queue. It arms the queue, and whatever it finds while doing so it
handles at once; after each wake-up it takes every finished request, then arms and looks again. Futures exist
only for requests that were not finished when awaited.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from ofipy._completion.cq import CompletionQueue
from ofipy._requests import RequestBase

__all__ = ["Reader", "Watch", "finish", "news"]

# Seconds between two looks while somebody's completions lie unread in the queue, which then cannot be armed.
_UNREAD_PERIOD = 0.001


class Reader:
    """Watches the descriptor of one queue in one event loop, as long as there are requests to wait for."""

    def __init__(self, cq: CompletionQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._cq = cq
        self._loop = loop
        self._thread = threading.get_ident()
        self._waiting = 0
        self._fd = -1  # while it is not watched
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, request: RequestBase) -> "asyncio.Future[None] | None":
        """A future that ends when there is news of the request; None: there is already."""
        future = self._loop.create_future()
        if not self._cq._watch(request, lambda: self._finished(future)):
            return None
        self._waiting += 1
        if self._fd < 0:
            self._fd = self._cq.fileno()
            self._loop.add_reader(self._fd, self._ready)
        self._arm()
        return future

    def _finished(self, future: "asyncio.Future[None]") -> None:
        # Other threads drain the queue too.
        if threading.get_ident() == self._thread:
            self._resolve(future)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve, future)

    def _resolve(self, future: "asyncio.Future[None]") -> None:
        self._waiting -= 1
        if not future.done():
            future.set_result(None)

    def _ready(self) -> None:
        self._timer = None
        if not self._waiting:
            # Nobody waits, and without a look the descriptor may stay readable: stop watching.
            self.stop()
            return
        self._cq._drain_finished()
        self._arm()

    def _arm(self) -> None:
        while self._waiting and not self._cq.arm():
            if not self._cq._drain_finished():
                if self._timer is None:
                    self._timer = self._loop.call_later(_UNREAD_PERIOD, self._ready)
                return

    def stop(self) -> None:
        """Watch no longer."""
        if self._fd >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._fd = -1
        self._cq._readers.pop(id(self._loop), None)


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
        with self._lock:
            if self._fd >= 0:
                self._waiting.add(future)
                self._loop.add_reader(self._fd, self._wake)
            return self._fd >= 0

    def _leave(self, future: "asyncio.Future[None]") -> None:
        with self._lock:
            self._waiting.discard(future)
            if not self._waiting and self._fd >= 0:
                self._loop.remove_reader(self._fd)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        """The descriptor is about to be closed: let everybody go."""
        with self._lock:
            fd, self._fd = self._fd, -1  # its number may soon be another one's
            if fd < 0 or not self._waiting or self._loop.is_closed():
                return
            self._loop.remove_reader(fd)
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            self._loop.call_soon_threadsafe(self._wake)


def _reader(cq: CompletionQueue) -> Reader:
    loop = asyncio.get_running_loop()
    reader = cq._readers.get(id(loop))
    if reader is None or reader._loop is not loop:
        reader = cq._readers[id(loop)] = Reader(cq, loop)
    return reader


async def finish(request: RequestBase, result: Callable[[], Any], withdraw: Callable[[], None]) -> Any:
    """Await a request; any number of tasks may await one. Who is cancelled and was the last one calls `withdraw`.

    Cancellation is exact for receives: either nothing was received, and a message that was already taken hold
    of goes back to its place, or the request has finished and still says what came. A send goes on.
    """
    request._awaiting += 1
    try:
        while not request._attempt(0):
            await news(request)
    except asyncio.CancelledError:
        # Others may still want it.
        if request._awaiting == 1:
            withdraw()
        raise
    finally:
        request._awaiting -= 1
    return result()


async def news(request: RequestBase) -> None:
    """Return when the request may have finished, or a multi-receive buffer may have a message."""
    future = _reader(request._endpoint._cq).watch(request)
    if future is not None:
        await future
