# SPDX-License-Identifier: BSD-3-Clause
"""The raw tier: records, batches, contexts, descriptors."""

import asyncio
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from machine import SLOWNESS
from sides import Side, Sides

import ofipy
from ofipy import Flag, Op

pytestmark = pytest.mark.connected

TIMEOUT = 30

OpenEndpoint = Callable[..., ofipy.Endpoint]


def collect(cq: ofipy.CompletionQueue, count: int) -> np.ndarray:
    """Wait for so many completions."""
    batch, rows = cq.batch(64), []
    while sum(map(len, rows)) < count:
        rows.append(batch.wait(timeout=TIMEOUT).copy())
    return np.concatenate(rows)


def test_one_by_one(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(b"abcdefgh" + bytes(24)))
    ep.post_trecv(region, me, tag=7, offset=8, length=8, context=1)
    ep.post_recv(region[16:32], context=2)
    ep.post_tsend(region, me, tag=7, length=8, context=3)
    ep.post_send(region[0:4], me, context=4, remote_data=2**63)
    rows = {int(row["context"]): row for row in collect(ep.cq, 4)}
    assert set(rows) == {1, 2, 3, 4}
    assert not any(row["error"] for row in rows.values())
    assert (rows[1]["length"], rows[1]["tag"], rows[1]["source"]) == (8, 7, me)
    assert int(rows[1]["flags"]) & (ofipy.Completed.RECV | ofipy.Completed.TAGGED)
    assert (rows[2]["length"], rows[2]["data"]) == (4, 2**63)
    assert int(rows[2]["flags"]) & ofipy.Completed.REMOTE_CQ_DATA
    assert int(rows[3]["flags"]) & ofipy.Completed.SEND
    assert {int(row["endpoint"]) for row in rows.values()} == {ep.id}
    assert bytes(region.array[8:32]) == b"abcdefghabcd" + bytes(12)
    with pytest.raises(ofipy.InvalidArgument):
        ep.post_tsend(region, me, offset=30, length=8)


def post_window(side: Side, count: int) -> None:
    ep, window = side.ep, 64
    memory = ep.empty(8 * window, np.uint8)
    region = ep.domain.region(memory)
    ops = ep.domain.operations(window)
    ops["op"], ops["region"], ops["peer"], ops["length"] = Op.TSEND, region.id, side.peer, 8
    ops["offset"] = region.offset + 8 * np.arange(window)
    done, sent, finished = ep.cq.batch(window), 0, 0
    while finished < count:
        size = min(window - (sent - finished), count - sent)
        if size:
            # Slots in use stay untouched: completions of sends come in order here only as a count.
            ops["context"][:size] = ops["tag"][:size] = np.arange(sent, sent + size)
            ops["flags"][:size] = int(Flag.INJECT | Flag.COMPLETION)
            memory.view(np.uint64)[:size] = np.arange(sent, sent + size)
            accepted = 0
            while accepted < size:
                try:
                    accepted += ep.post(ops[accepted:size])
                except ofipy.Again:
                    ep.domain.progress()
            sent += size
            finished += size
        assert not len(done.read())
    side.sync()


def receive_window(side: Side, count: int) -> None:
    ep, window = side.ep, 64
    memory = np.zeros(window, np.uint64)
    region = ep.register(memory)
    ops = ep.domain.operations(window)
    ops["op"], ops["region"], ops["peer"], ops["length"] = Op.TRECV, region.id, side.peer, 8
    ops["offset"] = 8 * np.arange(window)
    ops["context"] = np.arange(window)
    ops["ignore"] = 2**64 - 1
    assert ep.post(ops) == window
    done, seen = ep.cq.batch(window), 0
    while seen < count:
        rows = done.wait(timeout=TIMEOUT)
        assert not rows["error"].any()
        assert np.array_equal(rows["tag"], np.arange(seen, seen + len(rows)))
        slots = rows["context"].astype(np.int64)
        assert np.array_equal(memory[slots], rows["tag"])
        seen += len(rows)
        again = slots[: max(count - seen - (window - len(slots)), 0)]
        if len(again):
            assert ep.post(np.ascontiguousarray(ops[again])) == len(again)
    side.sync()


def test_batches_between_two_sides(sides: Sides) -> None:
    sides.run(post_window, receive_window, 5000)


def test_a_queue_never_loses_a_completion(open_endpoint: OpenEndpoint) -> None:
    first = open_endpoint()
    cq = first.domain.cq(size=16)
    ep = open_endpoint(first.domain, cq=cq)
    me, count = ep.insert(ep.address), 5000
    region = ep.register(bytearray(8))
    ops = ep.domain.operations(1)
    ops["op"], ops["region"], ops["peer"], ops["length"] = Op.TSEND, region.id, me, 8
    for context in range(count):
        ops["context"] = context
        while True:
            try:
                ep.post(ops)
                break
            except ofipy.Again:
                ep.domain.progress()
    rows = collect(cq, count)
    assert np.array_equal(np.sort(rows["context"]), np.arange(count))


def test_full_transmit_queue(open_endpoint: OpenEndpoint) -> None:
    """The raw tier says Again and accepts a prefix; the request tier waits for room."""
    first = open_endpoint(progress="manual")
    ep = open_endpoint(first.domain, tx_size=8)
    me = ep.insert(ep.address)
    region = ep.register(np.zeros(1 << 20, np.uint8))
    ops = ep.domain.operations(20)
    ops["op"], ops["region"], ops["peer"], ops["length"] = Op.TSEND, region.id, me, 1 << 20
    ops["flags"] = int(Flag.MATCH_COMPLETE)
    ops["context"] = np.arange(20)
    assert ep.post(ops) == 8
    with pytest.raises(ofipy.Again) as caught:
        ep.post(ops[8:])
    assert isinstance(caught.value, BlockingIOError)
    room = np.zeros(1 << 20, np.uint8)
    for _ in range(8):
        ep.trecv_into(room, me).wait(timeout=TIMEOUT)
    assert np.array_equal(np.sort(collect(ep.cq, 8)["context"]), np.arange(8))
    receives = [ep.trecv_into(np.zeros(1 << 20, np.uint8), me, tag=1) for _ in range(20)]
    sends = [ep.tsend(region, me, tag=1, complete="match") for _ in range(20)]
    ofipy.wait_all([*sends, *receives], timeout=TIMEOUT)


def test_refused_records(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(8))
    ops = ep.domain.operations(3)
    ops["op"], ops["region"], ops["peer"], ops["length"], ops["context"] = (
        Op.TSEND,
        region.id,
        me,
        8,
        (1, 2, 3),
    )
    for field, wrong, kind in (
        ("op", 99, ofipy.InvalidArgument),
        ("region", 54321, ofipy.Closed),
        ("length", 9, ofipy.InvalidArgument),
        ("offset", 2**64 - 4, ofipy.InvalidArgument),
        ("flags", 1 << 62, ofipy.InvalidArgument),
        ("peer", 777, ofipy.UnknownPeer),
    ):
        bad = ops.copy()
        bad[field][0] = wrong
        with pytest.raises(kind):
            ep.post(bad)
        bad = ops.copy()
        bad[field][1] = wrong
        assert ep.post(bad) == 1
        assert collect(ep.cq, 1)["context"][0] == 1
    with pytest.raises(ofipy.InvalidArgument):
        ep.post(np.zeros(4, np.uint64))
    with pytest.raises(ofipy.InvalidArgument):
        ep.post(ops[::2])


def test_inject(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """The buffer is reusable at once, and no completion is written."""
    size = min(ep.info.inject_size, 1 << 20)
    memory = np.zeros(size + 1, np.uint8)
    region = ep.register(memory)
    for number in range(20):
        memory[:] = number
        ep.post_tsend(region[0:size], me, tag=number, flags="inject", context=number)
    memory[:] = 99
    for number in range(20):
        room = np.zeros(size, np.uint8)
        ep.trecv_into(room, me, tag=number).wait(timeout=TIMEOUT)
        assert (room == number).all()
    assert len(ep.cq.read()) == 0


def test_selective_completion(open_endpoint: OpenEndpoint) -> None:
    first = open_endpoint()
    ep = open_endpoint(first.domain, selective_completion=True)
    me, region = ep.insert(ep.address), ep.register(bytearray(8))
    for context in range(6):
        ep.post_tsend(region, me, tag=1, context=context, flags=Flag.COMPLETION if context % 2 else None)
    assert sorted(collect(ep.cq, 3)["context"]) == [1, 3, 5]
    for _ in range(6):
        ep.trecv_into(bytearray(8), me, tag=1).wait(timeout=TIMEOUT)
    assert len(ep.cq.read()) == 0


def test_two_queues(open_endpoint: OpenEndpoint) -> None:
    first = open_endpoint()
    sends, receives = first.domain.cq(), first.domain.cq()
    ep = open_endpoint(first.domain, cq=receives, send_cq=sends)
    me, region = ep.insert(ep.address), ep.register(bytearray(16))
    ep.post_trecv(region[8:16], me, tag=1, context=1)
    ep.post_tsend(region[0:8], me, tag=1, context=2)
    assert collect(sends, 1)["context"] == [2]
    assert collect(receives, 1)["context"] == [1]


def test_error_rows(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(8))
    ep.post_trecv(region[0:2], me, tag=1, context=5)
    ep.tsend(b"too long", me, tag=1)
    row = collect(ep.cq, 1)[0]
    error = ep.cq.exception(row)
    assert row["context"] == 5
    assert isinstance(error, ofipy.Truncated)
    assert error.length == 8
    assert error.operation == "trecv"
    ep.post_trecv(region, me, tag=1, context=6)
    ep.tsend(b"fits", me, tag=1)
    assert ep.cq.exception(collect(ep.cq, 1)[0]) is None


# ------------------------------------------------------------------------------------------------------------- waiting


def test_wait_for_several(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(80))
    for number in range(10):
        ep.post_trecv(region[8 * number : 8 * number + 8], me, tag=number, context=number)
    batch = ep.cq.batch(16)
    begin = time.monotonic()
    with pytest.raises(ofipy.TimedOut, match="no completion"):
        batch.wait(timeout=0.05)
    assert time.monotonic() - begin >= 0.05
    for tag in range(4):
        ep.tsend(b"x", me, tag=tag)
    assert len(batch.wait(min=4, timeout=TIMEOUT)) == 4
    for tag in range(4, 6):
        ep.tsend(b"x", me, tag=tag)
    while ep.stats().receives != 6:
        ep.domain.progress()
    assert len(batch.wait(min=3, timeout=0.05)) == 2
    with pytest.raises(ofipy.InvalidArgument):
        batch.wait(min=17)
    assert len(ep.cq.read()) == 0


def test_signal_wakes_a_waiter(ep: ofipy.Endpoint) -> None:
    ep.cq.signal()
    assert len(ep.cq.wait(timeout=TIMEOUT)) == 0
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(ep.cq.wait(timeout=TIMEOUT))))
    thread.start()
    ep.cq.signal()
    thread.join(TIMEOUT)
    assert found == [0]


def sleep_on(cq: ofipy.CompletionQueue, timeout: float) -> bool:
    """What a program with an event loop of its own does. True: the descriptor became readable."""
    return bool(select.select([cq], [], [], timeout)[0])


@pytest.mark.needs("descriptor")
@pytest.mark.parametrize("progress", ["manual", "auto"])
def test_descriptor(open_endpoint: OpenEndpoint, progress: str) -> None:
    ep = open_endpoint(progress=progress)
    me = ep.insert(ep.address)
    region = ep.register(bytearray(8))
    assert ep.cq.arm()
    assert not sleep_on(ep.cq, 0.02)
    for number in range(20):
        ep.post_trecv(region, me, tag=1, context=number)
        assert ep.cq.arm()
        sender = threading.Thread(target=lambda: ep.tsend(b"x", me, tag=1).wait(timeout=TIMEOUT))
        sender.start()
        rows = []
        while not rows:
            if ep.cq.arm():
                assert sleep_on(ep.cq, TIMEOUT)
            rows = list(ep.cq.read()["context"])
        sender.join()
        assert rows == [number]
    ep.post_trecv(region, me, tag=1, context=1)
    ep.tsend(b"x", me, tag=1).wait(timeout=TIMEOUT)
    while ep.stats().receives != 21:
        ep.domain.progress()
    assert not ep.cq.arm()
    assert len(ep.cq.read()) == 1
    assert ep.cq.arm()


def wait_on_descriptor(side: Side, count: int) -> None:
    ep, region = side.ep, side.ep.register(bytearray(8))
    poll = select.epoll()
    poll.register(ep.cq, select.EPOLLIN)
    for number in range(count):
        ep.post_trecv(region, side.peer, tag=1, context=number)
        while not len(rows := ep.cq.read()):
            if ep.cq.arm():
                assert poll.poll(TIMEOUT)
        assert rows["context"][0] == number
        ep.tsend(b"back", side.peer, tag=2).wait(timeout=TIMEOUT)
    poll.close()


def answer(side: Side, count: int) -> None:
    for number in range(count):
        if number % 10 == 0:
            select.select([], [], [], 0.003)  # let the other one fall asleep
        side.ep.tsend(b"there", side.peer, tag=1).wait(timeout=TIMEOUT)
        side.ep.trecv_into(bytearray(4), side.peer, tag=2).wait(timeout=TIMEOUT)


@pytest.mark.needs("descriptor")
def test_descriptor_between_two_sides(sides: Sides) -> None:
    sides.run(wait_on_descriptor, answer, 300)


@pytest.mark.needs("descriptor")
def test_descriptor_in_an_event_loop(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(8))

    async def main() -> list[int]:
        loop, rows, done = asyncio.get_running_loop(), [], asyncio.Event()

        def ready() -> None:
            while True:
                rows.extend(ep.cq.read()["context"])
                if ep.cq.arm():
                    break
            if len(rows) == 10:
                done.set()

        for number in range(10):
            ep.post_trecv(region, me, tag=number, context=number)
        loop.add_reader(ep.cq, ready)
        ready()
        for number in range(10):
            ep.tsend(b"x", me, tag=number)
            await asyncio.sleep(0)
        await asyncio.wait_for(done.wait(), TIMEOUT)
        loop.remove_reader(ep.cq)
        return rows

    assert asyncio.run(main()) == list(range(10))


@contextmanager
def spending(ep: ofipy.Endpoint, *, sleeps: int, looks: int) -> Iterator[None]:
    """Within, so many sleeps and rounds of progress at most, and a tenth of the time on a processor."""
    before, began, used = ep.stats(), time.monotonic(), time.process_time()
    yield
    used = time.process_time() - used
    after = ep.stats()
    assert after.sleeps - before.sleeps <= sleeps
    assert after.progress_calls - before.progress_calls <= looks
    assert used < 0.1 * SLOWNESS * (time.monotonic() - began)


def idle(side: Side, seconds: float) -> None:
    """Wait, and nothing comes; then sleep on the descriptor."""
    # It looks some hundred times before it sleeps.
    with spending(side.ep, sleeps=3, looks=5000), pytest.raises(ofipy.TimedOut):
        side.ep.cq.wait(timeout=seconds)
    with spending(side.ep, sleeps=0, looks=50):
        assert side.ep.cq.arm()
        assert not sleep_on(side.ep.cq, seconds)


@pytest.mark.needs("descriptor")
@pytest.mark.needs("processes")
@pytest.mark.parametrize("progress", ["manual", "auto"])
def test_idle_process_uses_no_cpu(sides: Sides, progress: str) -> None:
    sides.run(idle, idle, 0.5, progress=progress)
