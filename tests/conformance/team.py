# SPDX-License-Identifier: BSD-3-Clause
"""Groups whose members are endpoints of this process, each driven by a thread of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ofipy
from ofipy._objects.group import join_group

TIMEOUT = 60.0

Open = Callable[..., ofipy.Endpoint]


class Meeting:
    """An exchange of bytes between threads, as a job has between processes."""

    def __init__(self, size: int) -> None:
        self._blocks: list[bytes] = [b""] * size
        self._barrier = threading.Barrier(size)

    def exchange(self, rank: int, block: bytes) -> list[bytes]:
        self._blocks[rank] = block
        self._barrier.wait(TIMEOUT)
        blocks = list(self._blocks)
        self._barrier.wait(TIMEOUT)
        return blocks


def make_team(open_endpoint: Open, size: int, **options: Any) -> list[ofipy.Group]:
    """A group of `size` new endpoints, as each of them sees it."""
    endpoints = [open_endpoint(**options) for _ in range(size)]
    peers = [[each.insert(other.address) for other in endpoints] for each in endpoints]
    meeting = Meeting(size)

    def join(rank: int) -> ofipy.Group:
        return join_group(endpoints[rank], rank, peers[rank], lambda block: meeting.exchange(rank, block))

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(join, range(size)))


def together(groups: list[ofipy.Group], work: Callable[..., Any]) -> list[Any]:
    """What `work(group)` returns at each member; all at the same time."""
    with ThreadPoolExecutor(len(groups)) as threads:
        return list(threads.map(work, groups))
