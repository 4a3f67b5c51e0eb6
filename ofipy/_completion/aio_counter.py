# SPDX-License-Identifier: BSD-3-Clause
"""Counters and asyncio.

A counter has one descriptor, and any number of tasks in any number of loops may await values of it. Each loop that has
some watches the descriptor; whichever wakes first looks for all of them, and arms it for the lowest value that is still
awaited.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ofipy._base.errors import Canceled, Closed, FabricError
from ofipy._base.process_lock import process_lock
from ofipy._requests import Hold

__all__ = ["Waits", "reached"]

# Guards who waits for what, of all counters: such waits are few, and long. Finalisers run anywhere, and may close one.
_lock = process_lock("waits for counters", held=True)

# Seconds between two looks while an endpoint of the domain can neither sleep nor work.
_LOOK_PERIOD = 0.001


@dataclass(slots=True, eq=False)
class _Waiter:
    threshold: int
    known: int
    """The error value that it knows."""
    future: "asyncio.Future[None]"
    loop: asyncio.AbstractEventLoop
    thread: int = field(default_factory=threading.get_ident)

    def call(self, function: Callable[[Any], object], argument: Any) -> None:
        """Call something in the thread of its loop."""
        if threading.get_ident() == self.thread:
            function(argument)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, argument)

    def resolve(self, error: FabricError | None) -> None:
        """End the wait; from any thread."""
        self.call(self._resolve, error)

    def _resolve(self, error: FabricError | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


class Counter(Protocol):
    """A counter, as those see it that await values of it."""

    _known: int
    _waits: Any
    _domain: Any

    def fileno(self) -> int: ...

    def _levels(self) -> tuple[int, int]: ...

    def _arm(self, threshold: int, errors: int) -> bool: ...

    def _failed(self, errors: int, known: int, operation: str) -> FabricError: ...


class Waits:
    """Those who wait for one counter."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._fd = counter.fileno()
        self._waiters: list[_Waiter] = []

    def add(self, waiter: _Waiter) -> None:
        """Watch the descriptor in its loop too; `_lock` is held."""
        self._waiters.append(waiter)
        # Harmless when the loop does so already.
        waiter.loop.add_reader(self._fd, self.look)

    def remove(self, waiter: _Waiter) -> None:
        """Its wait is over; called in its loop, with `_lock` held."""
        # Whoever ended the wait may have taken it out already.
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        if self._fd >= 0 and all(other.loop is not waiter.loop for other in self._waiters):
            waiter.loop.remove_reader(self._fd)
        if not self._waiters:
            self._counter._waits = None

    def look(self) -> None:
        """End the waits whose condition holds, and arm for the others."""
        with Hold(_lock):
            try:
                settled = self._settle() if self._waiters else False
                while self._waiters and not self._arm():
                    if not settled:
                        asyncio.get_running_loop().call_later(_LOOK_PERIOD, self.look)
                        return
                    settled = self._settle()
            except (Closed, Canceled):
                # By another thread, which ends them.
                return

    def _settle(self) -> bool:
        value, errors = self._counter._levels()
        over = [each for each in self._waiters if value >= each.threshold or errors != each.known]
        for waiter in over:
            self._waiters.remove(waiter)
            error = None
            if value < waiter.threshold:
                self._counter._known = errors
                error = self._counter._failed(errors, waiter.known, "reached")
            waiter.resolve(error)
        return bool(over)

    def _arm(self) -> bool:
        # All of them know the error value of the last look, or they would not be here.
        return self._counter._arm(min(each.threshold for each in self._waiters), self._waiters[0].known)

    def end(self) -> None:
        """The counter is about to close, and the descriptor with it."""
        with Hold(_lock):
            waiters, self._waiters = self._waiters, []
            fd, self._fd = self._fd, -1
            for waiter in waiters:
                waiter.call(waiter.loop.remove_reader, fd)
                waiter.resolve(
                    Canceled(
                        "the counter is closed", operation="reached", provider=self._counter._domain.provider
                    )
                )


async def reached(counter: Counter, threshold: int) -> None:
    """Return when the counter's value is at least `threshold`."""
    known = counter._known
    value, errors = counter._levels()
    if value >= threshold:
        return
    if errors != known:
        counter._known = errors
        raise counter._failed(errors, known, "reached")
    loop = asyncio.get_running_loop()
    waiter = _Waiter(threshold, known, loop.create_future(), loop)
    with Hold(_lock):
        waits = counter._waits
        if waits is None:
            waits = counter._waits = Waits(counter)
        waits.add(waiter)
    try:
        # The value may have been reached before the descriptor was watched.
        waits.look()
        await waiter.future
    finally:
        with Hold(_lock):
            waits.remove(waiter)
