# SPDX-License-Identifier: BSD-3-Clause
"""Incarnations of a peer: within one number no message is missing, and operations that are bound to one stay in it.

The hook `fault` breaks a connection: a message without a tag costs the sender its peer, and the other side hears of the
end of the connection.
"""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ofipy
from ofipy import EventKind, Flag, Op

TIMEOUT = 30
MESSAGES = 120
WINDOW = 6
END = b"."
SIZES = (4, 200, 6000, 100_000)

OpenEndpoint = Callable[..., ofipy.Endpoint]

pytestmark = pytest.mark.needs("core_matching", "directed_recv")


class Pair:
    """Two endpoints, the first of which breaks the connection when it is told to."""

    def __init__(self, open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OFIPY_HOOKS", "debug;fault:lose=1,operation=send")
        self.first, self.first_events = with_events(open_endpoint)
        monkeypatch.delenv("OFIPY_HOOKS")
        self.second, self.second_events = with_events(open_endpoint)
        self.peer, self.back = self.first.insert(self.second.address), self.second.insert(self.first.address)

    def send(self, text: bytes, tag: int = 1) -> None:
        """From the first to the second, which has it when this returns, as a message that nobody has received."""
        self.first.tsend(text, self.peer, tag=tag, complete="delivery").wait(timeout=TIMEOUT)

    def meet(self) -> tuple[int, int]:
        """Both sides' numbers of a new incarnation."""
        self.send(b"hello", tag=99)
        message = self.second.trecv(self.back, tag=99).wait(timeout=TIMEOUT)
        return self.first.incarnation(self.peer), message.incarnation

    def lose(self) -> tuple[ofipy.Event, ofipy.Event]:
        """Break the connection; return when both sides have heard of it, with what they heard."""
        with pytest.raises(ofipy.PeerLost):
            self.first.send(b"", self.peer).wait(timeout=TIMEOUT)
        return next_loss(self.first_events), next_loss(self.second_events)


def with_events(open_endpoint: OpenEndpoint) -> tuple[ofipy.Endpoint, ofipy.EventQueue[Any]]:
    domain = open_endpoint().domain
    events = domain.event_queue()
    return open_endpoint(domain, eq=events), events


def next_loss(events: ofipy.EventQueue[Any]) -> ofipy.Event:
    while (event := events.wait(timeout=TIMEOUT)).kind is not EventKind.PEER_LOST:
        pass
    return event


def is_over(request: ofipy.Request) -> bool:
    with pytest.raises(ofipy.PeerLost):
        request.wait(timeout=TIMEOUT)
    return True


@pytest.fixture
def pair(open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch) -> Pair:
    return Pair(open_endpoint, monkeypatch)


# numbers


def test_each_side_hears_of_every_change(pair: Pair) -> None:
    assert pair.first.incarnation(pair.peer) == pair.second.incarnation(pair.back) == 0
    seen: list[tuple[int, int]] = []
    for _ in range(3):
        seen.append(pair.meet())
        assert pair.second.incarnation(pair.back) == seen[-1][1]
        lost = pair.lose()
        assert tuple(event.incarnation for event in lost) == seen[-1]
        assert pair.first.incarnation(pair.peer) == 0
    for numbers in zip(*seen, strict=True):
        assert 0 < numbers[0] < numbers[1] < numbers[2]


def test_up_names_the_number(pair: Pair) -> None:
    number, far_number = pair.meet()
    for events, expected in ((pair.first_events, number), (pair.second_events, far_number)):
        event = events.wait(timeout=TIMEOUT)
        assert (event.kind, event.incarnation) == (EventKind.PEER_UP, expected)


def test_within_a_number_nothing_is_missing(
    open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFIPY_HOOKS", "debug;fault:lose=0.05,operation=tsend,seed=3")
    first = open_endpoint()
    monkeypatch.delenv("OFIPY_HOOKS")
    second = open_endpoint()
    peer, lost, arrived = first.insert(second.address), 0, list[tuple[int, int]]()
    receiver = threading.Thread(target=receive_all, args=(second, arrived))
    receiver.start()
    # Kept to the end: the other side may still copy from a send that this side has given up.
    payloads = [np.full(SIZES[number % len(SIZES)] // 4, number, np.uint32) for number in range(MESSAGES)]
    for begin in range(0, MESSAGES, WINDOW):
        sends = [first.tsend(payload, peer, tag=1) for payload in payloads[begin : begin + WINDOW]]
        lost += sum(map(is_lost, sends))
    assert lost
    while is_lost(first.tsend(END, peer, tag=1)):
        pass
    receiver.join(TIMEOUT)
    assert not receiver.is_alive()
    numbers = [number for _, number in arrived if number >= 0]
    assert numbers == sorted(set(numbers))
    assert len({incarnation for incarnation, _ in arrived}) > 1
    for (before, earlier), (after, later) in itertools.pairwise(arrived):
        if before == after > 0 and earlier >= 0:
            assert later == earlier + 1
        elif before and after:
            assert before <= after


def receive_all(ep: ofipy.Endpoint, arrived: list[tuple[int, int]]) -> None:
    """Incarnations and numbers of messages; (0, -1) for a receive that says itself that its message was lost."""
    while True:
        try:
            message = ep.trecv(tag=1).wait(timeout=TIMEOUT)
        except ofipy.PeerLost:
            arrived.append((0, -1))
            continue
        if message == END:
            return
        arrived.append((message.incarnation, int.from_bytes(message[:4], "little")))


def is_lost(send: ofipy.Request) -> bool:
    try:
        send.wait(timeout=TIMEOUT)
    except ofipy.PeerLost:
        return True
    return False


# sends


def test_a_send_that_is_bound_connects_nobody(pair: Pair) -> None:
    number, _ = pair.meet()
    pair.first.tsend(b"in time", pair.peer, tag=1, incarnation=number).wait(timeout=TIMEOUT)
    pair.lose()
    for bound in (number, 0, number + 1):
        assert is_over(pair.first.tsend(b"too late", pair.peer, tag=1, incarnation=bound))
    assert pair.first.incarnation(pair.peer) == 0
    later, _ = pair.meet()
    assert is_over(pair.first.tsend(b"too late", pair.peer, tag=1, incarnation=number))
    assert is_over(pair.first.tsend_obj("too late", pair.peer, tag=1, incarnation=number))
    prepared = pair.first.prepare_tsend(b"too late", pair.peer, tag=1, incarnation=number)
    prepared.start()
    assert is_over(prepared)
    pair.first.tsend(b"again", pair.peer, tag=1, incarnation=later).wait(timeout=TIMEOUT)
    texts = [bytes(pair.second.trecv(tag=1).wait(timeout=TIMEOUT)) for _ in range(2)]
    assert texts == [b"in time", b"again"]
    assert pair.second.probe(tag=1) is None


def test_a_large_send_in_flight_ends_with_it(pair: Pair) -> None:
    number, _ = pair.meet()
    # Until a receive matches it, which never comes: the peer might store it before the connection is lost.
    large = pair.first.tsend(
        np.zeros(4 << 20, np.uint8), pair.peer, tag=1, incarnation=number, complete="match"
    )
    pair.lose()
    assert is_over(large)


@pytest.mark.needs("rma")
def test_remote_memory(pair: Pair) -> None:
    number, _ = pair.meet()
    memory = np.zeros(8, np.uint8)
    region = pair.second.register(memory, access="local|remote_read|remote_write")
    remote = region.remote
    into = bytearray(8)
    pair.first.write(b"12345678", pair.peer, remote, incarnation=number, complete="delivery").wait(
        timeout=TIMEOUT
    )
    pair.first.read(into, pair.peer, remote, incarnation=number).wait(timeout=TIMEOUT)
    assert into == b"12345678"
    pair.lose()
    for request in (
        pair.first.write(b"87654321", pair.peer, remote, incarnation=number),
        pair.first.read(into, pair.peer, remote, incarnation=number),
    ):
        assert is_over(request)
    pair.meet()
    assert is_over(pair.first.write(b"87654321", pair.peer, remote, incarnation=number, flags="fence"))
    assert bytes(memory) == b"12345678"


@pytest.mark.needs("atomic")
def test_atomics(pair: Pair) -> None:
    number, _ = pair.meet()
    memory = np.zeros(1, np.int64)
    region = pair.second.register(memory, access="local|remote_read|remote_write")
    remote, one = region.remote, np.ones(1, np.int64)
    bound: dict[str, Any] = {"incarnation": number}
    pair.first.atomic(one, pair.peer, remote, op="sum", **bound).wait(timeout=TIMEOUT)
    assert pair.first.fetch_atomic(one, pair.peer, remote, op="sum", **bound).wait(timeout=TIMEOUT) == 1
    assert pair.first.compare_atomic(one, one, pair.peer, remote, **bound).wait(timeout=TIMEOUT) == 2
    pair.lose()
    pair.meet()
    for request in (
        pair.first.atomic(one, pair.peer, remote, op="sum", **bound),
        pair.first.fetch_atomic(one, pair.peer, remote, op="sum", **bound),
        pair.first.compare_atomic(one, one, pair.peer, remote, **bound),
    ):
        assert is_over(request)
    assert memory == 2


# receives


def test_a_receive_that_is_bound_ends_though_the_peer_lives(pair: Pair) -> None:
    _, number = pair.meet()
    ep, peer = pair.second, pair.back
    stays = ep.trecv_into(bytearray(5), peer, tag=9)
    bound = [
        ep.trecv_into(bytearray(5), peer, tag=8, incarnation=number),
        ep.recv_into(bytearray(5), peer, incarnation=number),
        ep.trecv(peer, tag=8, incarnation=number),
        ep.recv(peer, incarnation=number),
        ep.trecv_obj(peer, tag=8, incarnation=number),
    ]
    pair.lose()
    assert all(map(is_over, bound))
    assert is_over(ep.trecv(peer, tag=8, incarnation=number))
    assert not stays.test()
    pair.send(b"there", tag=9)
    assert stays.wait(timeout=TIMEOUT).length == 5


@pytest.mark.needs("multi_recv")
def test_a_buffer_for_many(pair: Pair) -> None:
    _, number = pair.meet()
    messages = pair.second.trecv_many(bytearray(1000), pair.back, tag=1, incarnation=number)
    pair.send(b"one")
    assert bytes(messages.next(timeout=TIMEOUT) or b"") == b"one"
    pair.lose()
    with pytest.raises(ofipy.PeerLost):
        messages.next(timeout=TIMEOUT)
    assert messages.released


def test_what_is_left_of_an_earlier_one_is_not_matched(pair: Pair) -> None:
    numbers = []
    for text in (b"first", b"second", b"third"):
        _, number = pair.meet()
        numbers.append(number)
        pair.send(text)
        if text != b"third":
            pair.lose()
    ep, peer = pair.second, pair.back
    assert ep.probe(peer, tag=1, incarnation=numbers[2]) is not None
    message = ep.trecv(peer, tag=1, incarnation=numbers[2]).wait(timeout=TIMEOUT)
    assert (bytes(message), message.incarnation) == (b"third", numbers[2])
    assert ep.probe(peer, tag=1, incarnation=numbers[2]) is None
    waits = ep.trecv(peer, tag=1, incarnation=numbers[2])
    assert not waits.test()
    assert waits.cancel()
    room = bytearray(8)
    assert ep.trecv_into(room, peer, tag=1, incarnation=numbers[1]).wait(timeout=TIMEOUT).length == 6
    assert is_over(ep.trecv_into(room, peer, tag=1, incarnation=numbers[1]))
    assert bytes(ep.trecv(peer, tag=0, ignore=1, incarnation=numbers[0]).wait(timeout=TIMEOUT)) == b"first"


def test_a_message_that_is_given_back_stays_of_its_own(pair: Pair) -> None:
    _, early = pair.meet()
    pair.send(b"early")
    held = pair.second.trecv(pair.back, tag=1)
    pair.lose()
    _, late = pair.meet()
    bound = pair.second.trecv(pair.back, tag=1, incarnation=late)
    assert held.cancel()
    assert not bound.test()
    pair.send(b"late")
    assert bytes(bound.wait(timeout=TIMEOUT)) == b"late"
    assert pair.second.trecv(pair.back, tag=1).wait(timeout=TIMEOUT).incarnation == early


# raw, and wrong arguments


def test_records(pair: Pair) -> None:
    number, _ = pair.meet()
    records = np.zeros(2, ofipy.OPERATION_DTYPE)
    records["op"], records["peer"], records["flags"] = Op.TSEND, pair.peer, Flag.BOUND
    records["reserved"], records["context"] = (number, number + 1), (1, 2)
    assert pair.first.post(records) == 2
    rows = pair.first.cq.wait(min=2, timeout=TIMEOUT)
    errors = {int(row["context"]): pair.first.cq.exception(row) for row in rows}
    assert errors[1] is None
    assert isinstance(errors[2], ofipy.PeerLost)


def test_wrong_arguments(pair: Pair) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="name the peer whose incarnation it is"):
        pair.second.trecv(tag=1, incarnation=1)
    for wrong in (-1, 2**32, "1"):
        with pytest.raises(ofipy.InvalidArgument, match="incarnation="):
            pair.first.tsend(b"", pair.peer, tag=1, incarnation=wrong)  # type: ignore[arg-type]
    with pytest.raises(ofipy.UnknownPeer):
        pair.first.incarnation(1 << 19)


def test_a_shared_receive_context_has_none(ep: ofipy.Endpoint) -> None:
    if not ep.info.caps & ofipy.Cap.SHARED_CONTEXT:
        pytest.skip("the provider shares no receive contexts")
    context = ep.domain.receive_context()
    with pytest.raises(ofipy.NotSupported, match="a receive context has peers of several endpoints"):
        context.trecv(context.av.insert(ep.address), tag=1, incarnation=1)
