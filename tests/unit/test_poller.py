# SPDX-License-Identifier: BSD-3-Clause
"""When an event loop may sleep."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ofipy._completion.aio import Poller


class Told:
    """A queue that could not be armed, as it had this much to tell of."""

    def __init__(self, news: int) -> None:
        self._news = news

    def collect(self) -> int:
        return self._news


class Pending(Poller):
    """Of one such queue."""

    left: Any

    def sources(self) -> Any:
        return []

    def arm_all(self) -> Any:
        return self.left


@pytest.mark.parametrize(("news", "pause"), [(1, 0), (0, 0.001)])
def test_a_queue_that_was_not_armed(news: int, pause: float) -> None:
    """News may let nobody go on, as that of a message which is then fetched: the queue has to be armed all the same."""
    loop = asyncio.new_event_loop()
    poller = Pending(loop)
    poller.left = [Told(news)]
    assert poller.arm() == pause
    poller.left = []
    assert poller.arm() is None
    loop.close()
