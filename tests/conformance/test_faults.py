# SPDX-License-Identifier: BSD-3-Clause
"""Operations that the hook `fault` fails, delays or takes the peer of: each ends once, and its error names the hook."""

import time
from collections.abc import Callable

import numpy as np
import pytest

import ofipy
from ofipy import Flag, Op

TIMEOUT = 30
MESSAGES = 300

OpenEndpoint = Callable[..., ofipy.Endpoint]
Hooks = Callable[[str], None]


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Hooks:
    """Endpoints opened from now on have these, and look at all contracts besides."""
    return lambda text: monkeypatch.setenv("OFIPY_HOOKS", f"debug;{text}")


def payload(number: int) -> bytes:
    """Sizes for every protocol of a transport."""
    return np.full((8, 200, 6000, 100_000)[number % 4], number % 251, np.uint8).tobytes()


def fault_of(request: ofipy.Request, words: str = "hook fault: ") -> bool:
    """Whether an operation failed; then the hook did it."""
    try:
        request.wait(timeout=TIMEOUT)
    except ofipy.FabricError:
        error = request.exception()
        assert words in str(error), error
        return True
    return False


def test_messages(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:fail=0.02")
    first, second = open_endpoint(), open_endpoint()
    peer = first.insert(second.address)
    receives = []
    for number in range(MESSAGES):
        room = bytearray(len(payload(number)))
        receives.append((room, second.trecv_into(room, tag=number)))
    sends = [first.tsend(payload(number), peer, tag=number) for number in range(MESSAGES)]
    failed = [fault_of(send) for send in sends]
    assert 0 < sum(failed) < MESSAGES // 5
    for number, (room, receive) in enumerate(receives):
        if receive.test() and receive.exception() is not None:
            assert fault_of(receive)
        elif failed[number]:
            assert receive.cancel()
        else:
            assert not fault_of(receive)
            assert room == payload(number)


def test_messages_of_unknown_size(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:nth=7,operation=tsend;fault:nth=5,operation=trecv")
    ep = open_endpoint()
    me, received, failures = ep.insert(ep.address), 0, 0
    for number in range(60):
        send = ep.tsend(payload(number), me, tag=number)
        # What the hook fails has ended at once; what is announced waits for its receive.
        if send.test() and fault_of(send, "hook fault: a tsend failed"):
            failures += 1
            continue
        receive = ep.trecv(tag=number)
        while fault_of(receive, "hook fault: a trecv failed"):
            failures += 1
            receive = ep.trecv(tag=number)
        assert bytes(receive.wait()) == payload(number)
        assert not fault_of(send)
        received += 1
    assert received == 60 - 60 // 7
    assert failures > 60 // 7


@pytest.mark.needs("rma")
def test_remote_memory(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:fail=0.1,operation=read+write")
    ep = open_endpoint()
    me, room = ep.insert(ep.address), np.zeros(1 << 16, np.uint8)
    remote = ep.register(room, access="remote_read|remote_write|local").remote
    for number in range(100):
        size = (8, 5000, 1 << 16)[number % 3]
        before, data = room[:size].copy(), np.full(size, number, np.uint8)
        if fault_of(ep.write(data, me, remote[:size])):
            assert np.array_equal(room[:size], before)
            continue
        out = np.zeros(size, np.uint8)
        if not fault_of(ep.read(out, me, remote[:size])):
            assert np.array_equal(out, data)


@pytest.mark.needs("atomic")
def test_atomics(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:nth=3,operation=fetch_atomic")
    ep = open_endpoint()
    me, target = ep.insert(ep.address), np.zeros(1, np.uint64)
    remote = ep.register(target, access="remote_read|remote_write|local").remote
    failed = [fault_of(ep.fetch_atomic(np.uint64(1), me, remote[0:8], op="sum")) for _ in range(30)]
    assert failed == [number % 3 == 2 for number in range(30)]
    assert target[0] == 20


def test_records(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:fail=0.1,operation=send+tsend")
    ep = open_endpoint()
    me, count = ep.insert(ep.address), 200
    region = ep.register(bytearray(8))
    ops = ep.domain.operations(count)
    ops["op"], ops["region"], ops["peer"], ops["length"] = Op.TSEND, region.id, me, 8
    ops["context"] = ops["tag"] = np.arange(count)
    ops["flags"][::2] = int(Flag.INJECT)
    assert ep.post(ops) == count
    failed: set[int] = set()
    ended: set[int] = set()
    deadline = time.monotonic() + TIMEOUT
    # Of injects only those that failed are told.
    while len({number for number in ended if number % 2}) < count // 2:
        assert time.monotonic() < deadline
        for row in ep.cq.wait(timeout=TIMEOUT):
            number = int(row["context"])
            assert number not in ended
            ended.add(number)
            if row["error"]:
                failed.add(number)
                assert "hook fault: a tsend failed" in str(ep.cq.exception(row))
    assert {number for number in ended if number % 2 == 0} <= failed
    assert 0 < len(failed) < count // 2


def test_what_is_late_keeps_its_order(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:delay=2ms")
    first, second = open_endpoint(), open_endpoint()
    peer, began = first.insert(second.address), time.monotonic()
    for round_ in range(5):
        sends = [first.tsend(payload(4 * round_ + each), peer, tag=1) for each in range(4)]
        for each in range(4):
            assert bytes(second.trecv(tag=1).wait(timeout=TIMEOUT)) == payload(4 * round_ + each)
        ofipy.wait_all(sends, timeout=TIMEOUT)
    assert time.monotonic() - began >= 0.01


def test_a_lost_peer_is_met_again(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:lose=0.2,operation=tsend,seed=5")
    first, second = open_endpoint(), open_endpoint()
    # Not the first in whatever table the transport has: nobody is met by a number that was forgotten.
    first.insert(first.address)
    peer, lost, arrived = first.insert(second.address), 0, 0
    for number in range(40):
        receive = second.trecv(tag=number)
        send = first.tsend(b"%03d" % number, peer, tag=number)
        if fault_of(send, "hook fault: the peer was lost on purpose"):
            assert isinstance(send.exception(), ofipy.PeerLost)
            assert receive.cancel()
            lost += 1
        else:
            assert bytes(receive.wait(timeout=TIMEOUT)) == b"%03d" % number
            arrived += 1
    assert lost
    assert arrived


def test_closing_with_all_of_it_under_way(open_endpoint: OpenEndpoint, hooks: Hooks) -> None:
    hooks("fault:fail=0.1;fault:delay=1s,operation=tsend")
    first, second = open_endpoint(), open_endpoint()
    peer = first.insert(second.address)
    requests: list[ofipy.Request] = [first.tsend(payload(number), peer, tag=number) for number in range(50)]
    requests += [first.trecv_into(bytearray(8), peer, tag=number) for number in range(50)]
    first.fabric.close(linger=0)
    for request in requests:
        assert request.test()
        error = request.exception()
        assert isinstance(error, ofipy.Canceled) or "hook fault: " in str(error)
