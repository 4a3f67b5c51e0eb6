# SPDX-License-Identifier: BSD-3-Clause
"""Two endpoints of one process that have met, each in a domain of its own, and what is left when they are gone."""

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Its threads are there before any are counted; ofipy imports it with the first array.
import numpy as np  # noqa: F401

import ofipy
from ofipy.pingpong.leftovers import count_descriptors

# Seconds within which whatever is asked for here has to happen, on a machine that is slow and busy.
PATIENCE = 20.0

SHARED = Path("/dev/shm")


def info_of(target: str) -> ofipy.Info:
    """What ``shm`` or ``shm/msg`` (connected endpoints) names."""
    provider, _, kind = target.partition("/")
    return ofipy.getinfo(provider=provider, ep_type=kind or "rdm")[0]


def open_domain(target: str) -> ofipy.Domain:
    """A domain with a helper thread: one thread drives several here."""
    return ofipy.Fabric(info_of(target)).domain(progress="auto")


class Pair:
    """`a`, whose calls are tested, and `b`, which they reach; of type ``msg`` they are connected.

    Parameters
    ----------
    target : str
        Name of the provider, with ``/msg`` for connected endpoints.
    options : callable, optional
        Gets the domain of `a`, returns options of the endpoint.
    """

    def __init__(self, target: str, options: Callable[[ofipy.Domain], dict[str, Any]] = lambda _: {}) -> None:
        self.target = target
        self._domains = [open_domain(target), open_domain(target)]
        first, second = self._domains
        if target.endswith("/msg"):
            listener = second.passive_endpoint()
            listener.listen()
            self.a = first.endpoint(**options(first)).enable()
            connection = self.a.connect(listener.address)
            self.b = listener.wait(timeout=PATIENCE).accept()
            connection.wait(timeout=PATIENCE)
            self.to_b, self.to_a = self.a.peer, self.b.peer
        else:
            self.a = first.endpoint(**options(first)).enable()
            self.b = second.endpoint().enable()
            self.to_b, self.to_a = self.a.insert(self.b.address), self.b.insert(self.a.address)

    def close(self) -> None:
        for domain in self._domains:
            domain.fabric.close()


def eventually(what: str, holds: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {PATIENCE:g} s: {what}")
        time.sleep(0.001)


class Leftovers:
    """Descriptors, threads and shared memory of this process that were not there when this was made."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> dict[str, int]:
        pid = str(os.getpid())
        return {
            "descriptors": count_descriptors(),
            "threads": len(os.listdir("/proc/self/task")),
            "files of shared memory": sum(pid in path.name for path in SHARED.iterdir()),
        }

    def check(self) -> None:
        """Nothing is left, at the latest when what nobody names is collected."""
        gc.collect()
        for what, before in self._before.items():
            eventually(f"as many {what} as before, {before}", lambda: self._now()[what] <= before)  # noqa: B023
