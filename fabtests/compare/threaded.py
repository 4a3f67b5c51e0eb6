# SPDX-License-Identifier: BSD-3-Clause
"""Threads that send messages to themselves; runs in one worker."""

import os
import threading
from collections.abc import Sequence
from importlib.metadata import version
from time import perf_counter_ns

import ofipy
from fabtests.compare.contender import new_buffer

__all__ = ["Threaded"]


class Threaded:
    """Two endpoints, each of its own domain.

    Parameters
    ----------
    first : bool
        There is one side only.
    provider : str
        Provider by name.
    allowed : sequence of int
        Cores that the threads may use.
    """

    def __init__(self, first: bool, *, provider: str, allowed: Sequence[int]) -> None:
        os.sched_setaffinity(0, set(allowed))
        self._first = first
        self._endpoints = [ofipy.open(provider=provider) for _ in range(2)]
        self._selves = [endpoint.insert(endpoint.address) for endpoint in self._endpoints]

    def version(self) -> str:
        """Of ofipy."""
        return version("ofipy")

    def exchange(self, mode: str, size: int, count: int) -> int:
        """Nanoseconds that the threads of this mode take for `count` messages each."""
        endpoints = {"one-thread": (0,), "request": (0, 1), "shared": (0, 0)}[mode]
        together = threading.Barrier(len(endpoints) + 1)
        threads = [
            threading.Thread(target=self._exchange, args=(which, tag, size, count, together))
            for tag, which in enumerate(endpoints)
        ]
        for thread in threads:
            thread.start()
        together.wait()
        begin = perf_counter_ns()
        for thread in threads:
            thread.join()
        return perf_counter_ns() - begin

    def _exchange(self, which: int, tag: int, size: int, count: int, together: threading.Barrier) -> None:
        endpoint, peer = self._endpoints[which], self._selves[which]
        send, receive = endpoint.tsend, endpoint.trecv_into
        outgoing, incoming = new_buffer(size), new_buffer(size)
        together.wait()
        for _ in range(count):
            send(outgoing, peer, tag=tag).wait()
            receive(incoming, peer, tag=tag).wait()

    def close(self) -> None:
        """Close the endpoints."""
        for endpoint in self._endpoints:
            endpoint.close()
