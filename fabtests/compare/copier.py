# SPDX-License-Identifier: BSD-3-Clause
"""A neighbour that fills the memory bus: it copies more than the caches hold, over and over."""

import os
import threading
from importlib.metadata import version

import numpy as np

from fabtests.compare.contender import new_buffer

__all__ = ["Copier", "pick_core"]

LEAST_BYTES = 64 << 20
CACHE = "SC_LEVEL3_CACHE_SIZE"
START_SECONDS = 60.0


def pick_core(cores: tuple[int, int]) -> int:
    """A core for the neighbour of a pair on `cores`: a third one, or else that of the first side.

    The first side sends. With the receiver's core shared no way of copying would make progress while the neighbour has
    its turn, and all would look alike; the sender's turn is what the ways need in different measure.
    """
    others = sorted(os.sched_getaffinity(0) - set(cores))
    return others[0] if others else cores[0]


def largest_cache() -> int:
    """Bytes of the last-level cache; 0 where the system does not tell."""
    return max(0, os.sysconf(CACHE)) if CACHE in os.sysconf_names else 0


class Copier:
    """Copies between :meth:`begin` and :meth:`end`, and sleeps at all other times; runs in one worker."""

    def __init__(self, first: bool) -> None:
        size = max(LEAST_BYTES, 2 * largest_cache())
        self._source, self._target = new_buffer(size), new_buffer(size)
        self._thread: threading.Thread | None = None
        self._running, self._stop = threading.Event(), threading.Event()
        self._passes = 0

    def version(self) -> str:
        """Of numpy, which copies."""
        return version("numpy")

    def begin(self) -> None:
        """Start to copy; returns when all of it was copied once.

        Raises
        ------
        TimeoutError
            When that takes too long.
        """
        self._running.clear()
        self._stop.clear()
        self._passes = 0
        self._thread = threading.Thread(target=self._copy, name="copier", daemon=True)
        self._thread.start()
        if not self._running.wait(START_SECONDS):
            raise TimeoutError(f"the neighbour did not copy its memory within {START_SECONDS:g} s")

    def _copy(self) -> None:
        while not self._stop.is_set():
            np.copyto(self._target, self._source)  # without the interpreter's lock
            self._passes += 1
            self._running.set()

    def end(self) -> int:
        """Stop copying.

        Returns
        -------
        int
            How often all of it was copied.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        return self._passes

    def close(self) -> None:
        """Stop."""
        self.end()
