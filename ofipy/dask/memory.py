# SPDX-License-Identifier: BSD-3-Clause
"""Memory for large frames, used again once nobody has what came in it.

Where memory is fresh, the system finds and clears pages while they are written for the first time. That takes as long
as the bytes take to come, and many times as long in a virtual machine whose host has to find them too.
"""

import asyncio
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, field

import dask.config
import numpy as np
from dask.utils import parse_bytes, parse_timedelta
from distributed.protocol.utils import host_array
from distributed.system import MEMORY_LIMIT

__all__ = ["LEAST", "FrameMemory"]

LEAST = 1 << 20
"""Bytes from which on a frame's memory is kept; shorter ones an allocator has at hand."""
_SHARE = 16  # of the machine's memory, or of what the process may have: one part of so many is kept at most


@dataclass(eq=False, slots=True)
class _Kept:
    memory: memoryview
    since: float = field(default_factory=time.monotonic)


class FrameMemory:
    """Memory of one event loop's frames.

    Made and asked within the loop. Frames are let go by whichever thread, or run of the garbage collector, drops the
    last reference. There is no lock, which the collector could ask for while its thread holds it: what is kept is in a
    dictionary, and of several threads that pop one piece, one has it.
    """

    def __init__(self) -> None:
        self._limit = min(parse_bytes(dask.config.get("distributed.comm.ofi.keep")), MEMORY_LIMIT // _SHARE)
        self._seconds = parse_timedelta(dask.config.get("distributed.comm.ofi.keep-for"))
        self._kept: dict[_Kept, bool] = {}  # oldest first; all True
        self._loop = weakref.ref(asyncio.get_running_loop())
        self._sweeps = False

    @property
    def kept(self) -> int:
        """Bytes that nobody uses."""
        return sum(each.memory.nbytes for each in list(self._kept))

    def take(self, size: int) -> memoryview:
        """Memory of that many bytes, which comes back when the last reference to the result has gone."""
        if size < LEAST or size > self._limit:
            return memoryview(host_array(size))
        memory = self._find(size)
        # Not a slice of an array: numpy lets a view of a view refer to the array that owns the memory, past the frame.
        frame = np.frombuffer(memory, np.uint8, size)
        weakref.finalize(frame, self._come_back, memory).atexit = False
        return frame.data

    def _find(self, size: int) -> memoryview:
        fitting = [each for each in list(self._kept) if size <= each.memory.nbytes <= size + size // 4]
        for each in sorted(fitting, key=lambda each: each.memory.nbytes):
            if self._kept.pop(each, False):
                return each.memory
        return np.empty(size, np.uint8).data

    def _come_back(self, memory: memoryview) -> None:
        self._kept[_Kept(memory)] = True
        for oldest in list(self._kept):
            if self.kept <= self._limit:
                break
            self._kept.pop(oldest, False)
        loop = self._loop()
        if loop is not None:
            with suppress(RuntimeError):  # closed
                loop.call_soon_threadsafe(self._see_to_sweep)

    def _see_to_sweep(self) -> None:
        loop = self._loop()
        if loop is not None and not self._sweeps:
            self._sweeps = True
            loop.call_later(self._seconds, self._drop_old)

    def _drop_old(self) -> None:
        self._sweeps = False
        until = time.monotonic() - self._seconds
        for each in list(self._kept):
            if each.since <= until:
                self._kept.pop(each, False)
        if self._kept:
            self._see_to_sweep()
