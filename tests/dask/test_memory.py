# SPDX-License-Identifier: BSD-3-Clause
"""Memory of frames: used again, never by two, bounded, and given back."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import dask.config
import numpy as np
import pytest
from distributed.protocol import deserialize, serialize

from ofipy.dask.memory import LEAST, FrameMemory


def within(seconds: str = "10 minutes", keep: str = "1 GiB") -> dict[str, str]:
    return {"distributed.comm.ofi.keep-for": seconds, "distributed.comm.ofi.keep": keep}


def address(frame: memoryview) -> int:
    return int(np.frombuffer(frame, np.uint8).ctypes.data)


def deserialized(frame: memoryview) -> Any:
    header, frames = serialize(np.arange(len(frame), dtype=np.uint8))
    assert len(frames) == 1
    frame[:] = memoryview(frames[0])
    return deserialize(header, [frame])


def unpickled(frame: memoryview) -> Any:
    pickled = pickle.dumps(np.zeros(len(frame), np.uint8), protocol=5, buffer_callback=lambda _: None)
    return pickle.loads(pickled, buffers=[frame])


VIEWS: dict[str, Callable[[memoryview], Any]] = {
    "memoryview": lambda frame: frame[LEAST:],
    "memoryview of an array": lambda frame: np.asarray(frame)[LEAST:].data,
    "asarray": np.asarray,
    "frombuffer": lambda frame: np.frombuffer(frame, np.uint64)[3:],
    "ndarray": lambda frame: np.ndarray((len(frame),), np.uint8, frame),
    "ndarray of a memoryview of an array": lambda frame: np.ndarray((5,), np.uint8, np.asarray(frame).data),
    "view": lambda frame: np.ndarray((len(frame),), np.uint8, frame)[8:].view(np.uint64).reshape(-1, 1),
    "deserialized": deserialized,
    "unpickled": unpickled,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_kept_from_others_by_any_view_of_it(view: Callable[[memoryview], Any]) -> None:
    async def main() -> None:
        memory = FrameMemory()
        for _ in ("fresh", "used again"):
            held = view(memory.take(4 * LEAST))
            assert memory.kept == 0
            del held
            assert memory.kept == 4 * LEAST

    with dask.config.set(within()):
        asyncio.run(main())


def test_used_again_when_nobody_has_it() -> None:
    async def main() -> None:
        memory = FrameMemory()
        first = memory.take(4 * LEAST)
        place = address(first)
        array = np.frombuffer(first, np.uint64)[3:]  # what an unpickled array is: it keeps the memory
        del first
        assert memory.kept == 0
        assert address(memory.take(4 * LEAST)) != place
        array[:] = 7
        del array
        assert memory.kept == 8 * LEAST
        again = [memory.take(4 * LEAST), memory.take(4 * LEAST)]
        assert place in {address(each) for each in again}
        assert len({address(each) for each in again}) == 2

    with dask.config.set(within()):
        asyncio.run(main())


@pytest.mark.parametrize(("size", "fits"), [(1, True), (0.8, True), (0.7, False), (1.1, False)])
def test_a_frame_of_another_size(size: float, fits: bool) -> None:
    async def main() -> None:
        memory = FrameMemory()
        memory.take(10 * LEAST)
        frame = memory.take(int(size * 10 * LEAST))
        assert len(frame) == int(size * 10 * LEAST)
        assert not frame.readonly
        assert (memory.kept == 0) is fits

    with dask.config.set(within()):
        asyncio.run(main())


def test_bounds() -> None:
    async def main() -> None:
        memory = FrameMemory()
        memory.take(LEAST - 1)  # an allocator has it at hand
        memory.take(5 * LEAST)  # more than is kept
        assert memory.kept == 0
        frames = [memory.take(LEAST) for _ in range(6)]
        places = [address(each) for each in frames]
        while frames:
            frames.pop(0)
        assert memory.kept == 4 * LEAST
        assert {address(memory.take(LEAST)) for _ in range(1)} <= set(places[2:])

    with dask.config.set(within(keep=f"{4 * LEAST}")):
        asyncio.run(main())


def test_given_back_after_a_while() -> None:
    async def main() -> None:
        memory = FrameMemory()
        held = memory.take(LEAST)
        memory.take(2 * LEAST)
        assert memory.kept == 2 * LEAST
        await asyncio.sleep(0.3)
        assert memory.kept == 0
        del held  # long after nothing was kept any more
        assert memory.kept == LEAST
        await asyncio.sleep(0.3)
        assert memory.kept == 0

    with dask.config.set(within("50 ms")):
        asyncio.run(main())


def test_threads_and_the_collector_let_go() -> None:
    async def main() -> None:
        memory = FrameMemory()

        def work(frames: list[memoryview]) -> None:
            while frames:
                cycle: list[object] = [frames.pop()]
                cycle.append(cycle)
                del cycle
                gc.collect(0)

        for _ in range(5):
            shares = [[memory.take(LEAST) for _ in range(20)] for _ in range(4)]
            places = [address(frame) for share in shares for frame in share]
            assert len(set(places)) == len(places)
            threads = [threading.Thread(target=work, args=(share,)) for share in shares]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            gc.collect()
            assert memory.kept <= 40 * LEAST

    with dask.config.set(within(keep=f"{40 * LEAST}")):
        asyncio.run(main())


def test_it_outlives_neither_its_loop_nor_keeps_it() -> None:
    async def main() -> FrameMemory:
        memory = FrameMemory()
        memory.take(2 * LEAST)
        await asyncio.sleep(0)  # from here on it sweeps
        return memory

    loop = asyncio.new_event_loop()
    gone = weakref.ref(loop)
    memory = loop.run_until_complete(main())
    frame = memory.take(LEAST)
    loop.close()
    del loop, frame  # no error, though there is no loop that could sweep
    gc.collect()
    assert gone() is None
    assert memory.kept == 3 * LEAST
