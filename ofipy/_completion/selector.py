# SPDX-License-Identifier: BSD-3-Clause
"""An event loop that polls for completions before it sleeps.

A selector knows what no other part of a loop does: that nothing is left to run. Then it polls the queues that
tasks wait for, for about as long as going to sleep and waking up would take, and arms them only after that. While
the loop has other things to run it takes one look a turn.
"""

import asyncio
import selectors
from typing import Protocol

__all__ = ["Selector", "loop"]


class Poller(Protocol):
    """That of a loop, as its selector sees it; see ``aio.py``."""

    waiting: int
    scheduled: bool
    active: bool
    misses: int

    def spin(self, nanoseconds: int, /) -> bool: ...

    def start_spin(self) -> int: ...

    def schedule(self) -> None: ...

    def arm(self) -> float | None: ...


class Selector(selectors.EpollSelector):
    """A selector for event loops whose tasks await requests; see :func:`ofipy.loop`.

    Examples
    --------
    >>> import asyncio, ofipy
    >>> loop = asyncio.SelectorEventLoop(ofipy.Selector())
    >>> loop.close()
    """

    __module__ = "ofipy"  # as programs import it

    SLICE = 20_000
    """Nanoseconds between two looks at other descriptors while polling."""

    def __init__(self) -> None:
        super().__init__()
        self.poller: Poller | None = None
        """Set when a task of the loop first waits."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for descriptors, or for news of requests, which the loop then is given to run."""
        poller = self.poller
        if poller is None or not poller.waiting or poller.scheduled:
            return super().select(timeout)
        if poller.spin(0):
            poller.schedule()
            return super().select(0)
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if poller.active:
            duration = poller.start_spin()
            if timeout is not None:
                duration = min(duration, int(timeout * 1e9))
            for _ in range(0, duration, self.SLICE):
                found = poller.spin(self.SLICE)
                if found:
                    poller.schedule()
                # Other threads and signals come by a descriptor too.
                events = super().select(0)
                if found or events:
                    return events
            poller.misses += duration > 0
        pause = poller.arm()
        if pause is not None:
            timeout = pause if timeout is None else min(timeout, pause)
        return super().select(timeout)


def loop() -> asyncio.SelectorEventLoop:
    """Make an event loop that polls for completions for a moment before it sleeps.

    Returns
    -------
    asyncio.SelectorEventLoop
        As asyncio's own, with a :class:`Selector`.

    Notes
    -----
    It polls for a tenth of a millisecond at most after something has come or a task has begun to wait, without the
    interpreter's lock; an idle one sleeps.

    Examples
    --------
    >>> import asyncio, ofipy
    >>> async def main():
    ...     with ofipy.open() as ep:
    ...         await ep.tsend(b"hello", ep.insert(ep.address), tag=7)
    ...         return bytes((await ep.trecv(tag=7)).data)
    >>> with asyncio.Runner(loop_factory=ofipy.loop) as runner:
    ...     runner.run(main())
    b'hello'
    """
    return asyncio.SelectorEventLoop(Selector())
