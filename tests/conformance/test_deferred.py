# SPDX-License-Identifier: BSD-3-Clause
"""Operations and other work that wait for a counter."""

import errno
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sides import Side, Sides, Target

import ofipy

pytestmark = pytest.mark.needs("trigger")

TIMEOUT = 20

OpenEndpoint = Callable[..., ofipy.Endpoint]


def record(
    ep: ofipy.Endpoint, op: ofipy.Op, peer: int, region: ofipy.Region, tag: int, context: int
) -> np.ndarray[Any, np.dtype[np.void]]:
    records = ep.domain.operations(1)
    records["op"] = op
    records["peer"] = peer
    records["tag"] = tag
    records["context"] = context
    records["region"] = region._id
    records["offset"] = region._offset
    records["length"] = len(region)
    records["endpoint"] = ep.id
    return records


def answer_by_counters(side: Side, rounds: int) -> None:
    """One send for each receive that has finished, none of them posted by hand."""
    domain, last = side.ep.domain, 100
    received = domain.counter()
    region = side.ep.register(bytearray(b"deferred"))
    for number in range(rounds):
        receive = record(side.ep, ofipy.Op.TRECV, side.peer, region, number, number)
        domain.defer(receive, after=(received, 0), completes=received)
        send = record(side.ep, ofipy.Op.TSEND, side.peer, region, last + number, last + number)
        assert side.ep.post(send, after=(received, number + 1)) == 1
    side.sync()
    received.wait(rounds, timeout=TIMEOUT)
    seen: list[int] = []
    while len(seen) < 2 * rounds:
        rows = side.ep.cq.wait(timeout=TIMEOUT)
        assert not rows["error"].any()
        seen += [int(context) for context in rows["context"]]
    assert sorted(seen) == [*range(rounds), *range(last, last + rounds)]
    side.sync()


def ask_and_listen(side: Side, rounds: int) -> None:
    side.sync()
    for number in range(rounds):
        room = bytearray(8)
        answer = side.ep.trecv_into(room, side.peer, tag=100 + number)
        side.ep.tsend(b"question", side.peer, tag=number).wait(timeout=TIMEOUT)
        answer.wait(timeout=TIMEOUT)
        assert room == b"question"
    side.sync()


def test_sends_follow_receives(sides: Sides) -> None:
    sides.run(answer_by_counters, ask_and_listen, 10)


def test_counters_change_counters(ep: ofipy.Endpoint) -> None:
    first, second, third = (ep.domain.counter() for _ in range(3))
    assert second.add(5, after=(first, 1)) is not None
    second.set(2, after=(first, 2))
    third.add(9, after=(second, 5))
    late = third.add(100, after=(second, 6))
    assert second.value == 0
    first.add(1)
    third.wait(9, timeout=TIMEOUT)
    assert second.value == 5
    first.add(1)
    second.wait(2, timeout=TIMEOUT)
    assert late is not None
    assert late.cancel()
    assert not late.cancel()
    second.set(50)
    assert third.value == 9


@pytest.mark.parametrize("end", ["work", "context", "flush", "counter"])
def test_what_is_cancelled_says_so(ep: ofipy.Endpoint, me: ofipy.Peer, end: str) -> None:
    counter, done = ep.domain.counter(), ep.domain.counter()
    region = ep.register(bytearray(8))
    receive = record(ep, ofipy.Op.TRECV, me, region, 1, 33)
    work = ep.domain.defer(receive, after=(counter, 1), completes=done)
    if end == "work":
        assert work.cancel()
    elif end == "context":
        assert ep.cancel(33)
    elif end == "flush":
        assert ep.domain.flush_work() == 1
        assert ep.domain.flush_work() == 0
    else:
        counter.close()
    (row,) = ep.cq.wait(timeout=TIMEOUT)
    assert row["context"] == 33
    assert row["error"] == errno.ECANCELED
    assert (done.value, done.errors) == (0, 1)
    assert not work.cancel()


def test_refused_when_it_starts(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    counter = ep.domain.counter()
    region = ep.register(bytearray(8))
    ep.post(record(ep, ofipy.Op.TSEND, 4711, region, 1, 8), after=(counter, 1))
    counter.add(1)
    (row,) = ep.cq.wait(timeout=TIMEOUT)
    assert row["context"] == 8
    assert isinstance(ep.cq.exception(row), ofipy.UnknownPeer)


def test_refused_at_once(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    counter = ep.domain.counter()
    region = ep.register(bytearray(8))
    good = record(ep, ofipy.Op.TSEND, me, region, 1, 8)
    with pytest.raises(ofipy.InvalidArgument):
        ep.post(good, after=(counter, -1))
    with pytest.raises(ofipy.InvalidArgument):
        ep.post(np.zeros(1, np.uint8), after=(counter, 1))
    with pytest.raises(ofipy.InvalidArgument):
        ep.domain.defer(ep.domain.operations(2), after=(counter, 1))
    good["endpoint"] += 1
    with pytest.raises(ofipy.FabricError):
        ep.domain.defer(good, after=(counter, 1))
    good["flags"] = ofipy.Flag.PEEK
    good["op"] = ofipy.Op.TRECV
    with pytest.raises(ofipy.InvalidArgument):
        ep.post(good, after=(counter, 1))
    counter.close()
    with pytest.raises(ofipy.Closed):
        ep.post(good, after=(counter, 1))


def test_closing_everything_under_waiting_work(target: Target) -> None:
    ep = target.open()
    me = ep.insert(ep.address)
    first, second = ep.domain.counter(), ep.domain.counter()
    region = ep.register(bytearray(8))
    ep.post(record(ep, ofipy.Op.TRECV, me, region, 1, 1), after=(first, 1))
    ep.domain.defer(record(ep, ofipy.Op.TRECV, me, region, 1, 1), after=(first, 0), completes=second)
    second.add(1, after=(first, 5))
    first.add(1, after=(second, 5))
    ep.fabric.close()
    assert first.closed
    assert second.closed


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("after"), st.integers(0, 12), st.integers(1, 3)),
        st.tuples(st.just("add"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("set"), st.integers(0, 12), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 20), st.just(0)),
    ),
    max_size=30,
)


@pytest.fixture(scope="module")
def domain(target: Target) -> Any:
    """One domain for every example."""
    ep = target.open()
    yield ep.domain
    ep.fabric.close()


@given(steps=STEPS)
@settings(max_examples=100)
def test_thresholds_as_the_model_says(domain: ofipy.Domain, steps: list[tuple[str, int, int]]) -> None:
    with domain.counter() as trigger, domain.counter() as target:
        value = expected = 0
        works: list[ofipy.DeferredWork] = []
        waiting: dict[int, tuple[int, int]] = {}
        for step, number, weight in steps:
            if step == "after":
                work = target.add(weight, after=(trigger, number))
                assert work is not None
                works.append(work)
                waiting[len(works) - 1] = number, weight
            elif step == "cancel" and works:
                chosen = number % len(works)
                assert works[chosen].cancel() == (waiting.pop(chosen, None) is not None)
            elif step == "add":
                trigger.add(number)
                value += number
            elif step == "set":
                trigger.set(number)
                value = number
            for index, (threshold, amount) in list(waiting.items()):
                if threshold <= value:
                    expected += amount
                    del waiting[index]
            assert target.value == expected


def add_up_what_comes(side: Side, rounds: int) -> None:
    """Each receive that has finished is added to the sum; the next send waits for that."""
    domain = side.ep.domain
    total, room = np.zeros(100, np.int64), np.zeros((rounds, 100), np.int64)
    into, parts = side.ep.register(total), side.ep.register(room)
    received, added = domain.counter(), domain.counter()
    for number in range(rounds):
        part = parts[number * 800 : (number + 1) * 800]
        domain.defer(
            record(side.ep, ofipy.Op.TRECV, side.peer, part, number, number),
            after=(received, 0),
            completes=received,
        )
        domain.defer_reduce(
            into, part, op="sum", dtype=np.int64, after=(received, number + 1), completes=added
        )
    side.ep.post(record(side.ep, ofipy.Op.TSEND, side.peer, into, rounds, rounds), after=(added, rounds))
    side.sync()
    added.wait(rounds, timeout=TIMEOUT)
    assert (total == room.sum(0)).all()
    assert total[3] == sum(3 * (number + 1) for number in range(rounds))
    side.sync()


def send_and_get_the_sum(side: Side, rounds: int) -> None:
    side.sync()
    for number in range(rounds):
        side.ep.tsend(np.arange(100) * (number + 1), side.peer, tag=number).wait(timeout=TIMEOUT)
    answer = np.zeros(100, np.int64)
    side.ep.trecv_into(answer, side.peer, tag=rounds).wait(timeout=TIMEOUT)
    assert (answer == np.arange(100) * sum(range(1, rounds + 1))).all()
    side.sync()


def test_receives_are_added_up(sides: Sides) -> None:
    sides.run(add_up_what_comes, send_and_get_the_sum, 5)


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "bor", "band", "bxor", "write", "diff"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_reduces_as_numpy_does(ep: ofipy.Endpoint, op: str, dtype: type) -> None:
    meaning: dict[str, Any] = {
        "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "bor": np.bitwise_or,
        "band": np.bitwise_and, "bxor": np.bitwise_xor, "write": lambda _, right: right, "diff": np.subtract,
    }  # fmt: skip
    left, right = np.arange(100, dtype=dtype), np.arange(7, 107, dtype=dtype)
    expected = meaning[op](left, right)
    start, done = ep.domain.counter(), ep.domain.counter()
    target, source = ep.register(left), ep.register(right)
    ep.domain.defer_reduce(target, source, op=op, dtype=dtype, after=(start, 1), completes=done)
    assert left[1] == 1
    start.add(1)
    done.wait(1, timeout=TIMEOUT)
    assert (left == expected).all()
    assert right[0] == 7


def test_a_reduction_that_does_not_start(ep: ofipy.Endpoint) -> None:
    start, done = ep.domain.counter(), ep.domain.counter()
    values = np.ones(8, np.int32)
    region = ep.register(values)
    work = ep.domain.defer_reduce(region, region, op="sum", dtype="i4", after=(start, 1), completes=done)
    assert work.cancel()
    assert not work.cancel()
    assert done.errors == 1
    ep.domain.defer_reduce(region, region, op="sum", dtype="i4", after=(start, 1), completes=done)
    region.close()
    start.add(1)
    assert done.errors == 2
    assert done.value == 0
    assert (values == 1).all()


def test_reductions_that_are_refused(ep: ofipy.Endpoint) -> None:
    start = ep.domain.counter()
    region = ep.register(bytearray(32))

    def reduce(
        target: ofipy.Region, source: ofipy.Region, op: str = "sum", dtype: Any = "i4", threshold: int = 1
    ) -> None:
        ep.domain.defer_reduce(target, source, op=op, dtype=dtype, after=(start, threshold))

    with pytest.raises(ofipy.InvalidArgument, match="8 bytes to combine with 16"):
        reduce(region[:16], region[16:24])
    with pytest.raises(ofipy.InvalidArgument):
        reduce(region[:16], region[8:24])
    with pytest.raises(ofipy.InvalidArgument):
        reduce(region[:6], region[16:22])
    with pytest.raises(ofipy.InvalidArgument):
        reduce(region[:8], region[16:24], threshold=-1)
    with pytest.raises(ofipy.InvalidArgument):
        reduce(region[:8], region[16:24], op="add")
    with pytest.raises(ofipy.NotSupported):
        reduce(region[:8], region[16:24], op="cswap")
    with pytest.raises(ofipy.NotSupported):
        reduce(region[:8], region[16:24], op="bor", dtype="f4")
    with pytest.raises(ofipy.BufferTypeError):
        reduce(region[:8], region[16:24], dtype="O")
    region.close()
    with pytest.raises(ofipy.Closed):
        reduce(region[:8], region[16:24])
    assert ep.domain.flush_work() == 0
