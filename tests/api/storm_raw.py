# SPDX-License-Identifier: BSD-3-Clause
"""The raw tier in a storm: each operation that was accepted has one completion, whoever was interrupted reading it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numbered import message, number_of
from pair import PATIENCE, eventually
from storm import INTERRUPTED
from storm_cases import TAG, Rounds, Scene, case, send
from storm_sends import drain

import ofipy

SIZE = 4096


def collect(
    scene: Scene, read: Callable[[ofipy.CompletionBatch], Any], surely: set[int], perhaps: set[int]
) -> None:
    """Read the completion of every operation, once."""
    batch = scene.a.cq.batch(4)
    seen: list[int] = []

    def look() -> bool:
        rows = scene.storm.attempt(lambda: read(batch))
        if rows is not INTERRUPTED and rows is not None:
            assert not rows["error"].any()
            seen.extend(map(int, rows["context"]))
        return surely <= set(seen)

    eventually(f"the completions of {sorted(surely)} were read", look)
    assert len(set(seen)) == len(seen), f"a completion was read twice: {seen}"
    assert set(seen) <= surely | perhaps, f"{seen}, though only {surely | perhaps} were posted"


def take_rest(scene: Scene) -> None:
    """Completions of operations whose post was interrupted, which come or do not."""
    eventually("no operation is in flight", lambda: scene.a.stats().pending == 0)
    while len(scene.a.cq.read()):
        pass


def wait(batch: ofipy.CompletionBatch) -> Any:
    try:
        return batch.wait(timeout=0.001)
    except ofipy.TimedOut:
        return None


def raw_sends(
    name: str,
    post: Callable[[Scene, ofipy.Region, list[int]], Any],
    read: Callable[[ofipy.CompletionBatch], Any],
) -> None:
    """Enter a way of posting, and one of reading."""

    @case(name)
    def rounds(scene: Scene) -> Rounds:
        memory = bytearray(8 * SIZE)
        region = scene.a.register(memory)
        while True:
            surely: set[int] = set()
            perhaps: set[int] = set()
            for slot in range(scene.random.randint(1, 8)):
                number = next(scene.numbers)
                memory[slot * SIZE : (slot + 1) * SIZE] = message(number, SIZE)
                posted = scene.storm.attempt(
                    lambda: post(scene, region[slot * SIZE : (slot + 1) * SIZE], [number])  # noqa: B023
                )
                (perhaps if posted is INTERRUPTED else surely).add(number)
            drain(scene, surely, perhaps)
            collect(scene, read, surely, perhaps)
            take_rest(scene)
            yield


def post_records(scene: Scene, region: ofipy.Region, numbers: list[int]) -> None:
    records = scene.a.domain.operations(1)
    records["op"], records["region"], records["offset"] = ofipy.Op.TSEND, region.id, region.offset
    records["length"], records["peer"], records["tag"] = len(region), int(scene.pair.to_b), TAG
    records["context"] = numbers
    assert scene.a.post(records) == 1


def post_tsend(scene: Scene, region: ofipy.Region, numbers: list[int]) -> None:
    scene.a.post_tsend(region, scene.pair.to_b, tag=TAG, context=numbers[0])


raw_sends("post_tsend", post_tsend, lambda batch: batch.read())
raw_sends("post", post_records, wait)


@case("post_trecv")
def post_trecv(scene: Scene) -> Rounds:
    """Each message is in the memory that its completion names."""
    memory = bytearray(8 * SIZE)
    region = scene.a.register(memory)
    while True:
        surely: set[int] = set()
        perhaps: set[int] = set()
        for slot in range(8):
            posted = scene.storm.attempt(
                lambda: scene.a.post_trecv(region[slot * SIZE : (slot + 1) * SIZE], tag=TAG, context=slot)  # noqa: B023
            )
            (perhaps if posted is INTERRUPTED else surely).add(slot)
        # Nobody holds these receives, so one whose post was interrupted is there or not. A cancel tells that by the
        # completion that it causes: what it returns is lost if it is interrupted in its turn.
        cancelled = {slot for slot in perhaps if scene.storm.until_done(lambda: scene.a.cancel(slot))}  # noqa: B023
        batch = scene.a.cq.batch(8)
        posted_now = {int(row["context"]) for row in batch.read() if row["error"]}
        assert cancelled <= posted_now <= perhaps
        numbers = [next(scene.numbers) for _ in surely]
        arriving = [send(scene, number, SIZE) for number in numbers]
        came: set[int] = set()
        while len(came) < len(surely):
            for row in batch.wait(timeout=PATIENCE):
                assert not row["error"]
                assert int(row["context"]) not in came
                came.add(int(row["context"]))
        assert came == surely
        assert [number_of(memory[slot * SIZE : (slot + 1) * SIZE]) for slot in sorted(surely)] == numbers
        ofipy.wait_all(arriving, timeout=PATIENCE)
        yield


# ----------------------------------------------------------------------------------------- counters, events


@case("counter-wait", options=lambda domain: {"counters": {"recv": domain.counter()}})
def counter(scene: Scene) -> Rounds:
    """The counter has counted every message once."""
    received = scene.a._attributes.counters["recv"]
    total = 0
    while True:
        numbers = [next(scene.numbers) for _ in range(3)]
        buffers = [bytearray(SIZE) for _ in numbers]
        requests = [scene.a.trecv_into(buffer, tag=TAG) for buffer in buffers]
        sending = scene.later(
            lambda: ofipy.wait_all([send(scene, number, SIZE) for number in numbers], timeout=PATIENCE)  # noqa: B023
        )
        total += len(numbers)
        scene.storm.until_done(lambda: received.wait(total, timeout=PATIENCE))  # noqa: B023
        assert scene.storm.until_done(lambda: received.value) == total
        assert [number_of(buffer) for buffer in buffers] == numbers
        ofipy.wait_all(requests, timeout=PATIENCE)
        sending.result(PATIENCE)
        yield


def events(name: str, read: Callable[[ofipy.EventQueue], ofipy.Event | None]) -> None:
    """Enter a way of reading events: each comes out once, in order."""

    @case(name, connected=False)
    def rounds(scene: Scene) -> Rounds:
        queue = scene.a.domain.event_queue()
        while True:
            numbers = [next(scene.numbers) for _ in range(8)]
            for number in numbers:
                queue.write(ofipy.Event(context=number, data=message(number, 256)))
            for number in numbers:
                event = scene.storm.until_done(lambda: read(queue))
                assert event is not None, f"event {number} was lost"
                assert (event.context, number_of(event.data)) == (number, number)
            assert queue.read() is None
            yield


events("event-read", lambda queue: queue.read())
events("event-wait", lambda queue: queue.wait(timeout=1))


@case("event-write", connected=False)
def write_events(scene: Scene) -> Rounds:
    """An event is written once, or, when that was interrupted, not."""
    queue = scene.a.domain.event_queue()
    while True:
        surely, perhaps = [], []
        for _ in range(8):
            number = next(scene.numbers)
            event = ofipy.Event(context=number, data=message(number, 256))
            written = scene.storm.attempt(lambda: queue.write(event))  # noqa: B023
            (perhaps if written is INTERRUPTED else surely).append(number)
        came = []
        while (found := queue.read()) is not None:
            assert number_of(found.data) == found.context
            came.append(found.context)
        assert came == sorted(set(came))
        assert set(surely) <= set(came) <= set(surely + perhaps)
        yield


@case("register", connected=False)
def register(scene: Scene) -> Rounds:
    """A region is there, or its memory is the program's again."""
    while True:
        memory = np.zeros(SIZE, np.uint8)
        region = scene.storm.attempt(lambda: scene.a.register(memory, access="remote_read|remote_write"))  # noqa: B023
        if region is not INTERRUPTED:
            assert scene.storm.until_done(lambda: bytes(region.array)) == bytes(SIZE)  # noqa: B023
            scene.storm.until_done(region.close)
            assert region.closed
        yield


@case("empty", connected=False)
def empty(scene: Scene) -> Rounds:
    """Memory is there, zero, or given back."""
    while True:
        array = scene.storm.attempt(lambda: scene.a.empty(100_000, access="remote_read"))
        if array is not INTERRUPTED:
            assert not array.any()
            array[:] = 1
        del array
        yield
