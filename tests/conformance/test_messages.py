# SPDX-License-Identifier: BSD-3-Clause
"""Messages between two sides: sizes, contents, order, remote data."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from sides import Side, Sides, Target

import ofipy

pytestmark = [pytest.mark.connected, pytest.mark.untagged]
TAGGED = pytest.param(True, id="tagged", marks=pytest.mark.needs("tagged"))
PLAIN = pytest.param(False, id="plain")

TIMEOUT = 30
DRAINED = 1000  # messages, after which the receiver of a flood tells of them
BASE_SIZES = (
    0,
    1,
    8,
    95,
    96,
    97,
    4095,
    4096,
    4097,
    16 * 1024 - 1,
    16 * 1024,
    16 * 1024 + 1,
    1024 * 1024 - 1,
    1024 * 1024,
    1024 * 1024 + 1,
    5 * 1024 * 1024 + 3,
)


def pattern(size: int, seed: int = 0) -> np.ndarray:
    """Bytes that depend on position and seed."""
    return (np.arange(size, dtype=np.uint32) * 2654435761 + seed * 977 >> 7).astype(np.uint8)


def sizes_of(info: ofipy.Info) -> list[int]:
    """Sizes at every edge of the provider."""
    edges = (max(info.inject_size + step, 0) for step in (-1, 0, 1) if info.inject_size < 1 << 20)
    return sorted(size for size in {*BASE_SIZES, *edges} if size <= info.max_msg_size)


# ------------------------------------------------------------------------------------------------------- every size


def send_sizes(side: Side, tagged: bool) -> None:
    for number, size in enumerate(sizes_of(side.ep.info)):
        data = pattern(size, number)
        request = side.ep.tsend(data, side.peer, tag=number) if tagged else side.ep.send(data, side.peer)
        request.wait(timeout=TIMEOUT)
    side.sync()


def receive_sizes(side: Side, tagged: bool) -> None:
    for number, size in enumerate(sizes_of(side.ep.info)):
        room = np.full(size, 0xEE, np.uint8)
        if tagged:
            got = side.ep.trecv_into(room, side.peer, tag=number).wait(timeout=TIMEOUT)
            assert got.tag == number
        else:
            got = side.ep.recv_into(room, side.peer).wait(timeout=TIMEOUT)
        assert got.length == size
        assert got.source == side.peer
        assert np.array_equal(room, pattern(size, number))
    side.sync()


@pytest.mark.datagrams
@pytest.mark.parametrize("tagged", [TAGGED, PLAIN])
def test_every_size_arrives_whole(sides: Sides, tagged: bool) -> None:
    sides.run(send_sizes, receive_sizes, tagged)


def receive_sizes_late(side: Side, tagged: bool) -> None:
    """Let everything arrive before a receive is posted, then take it in reverse."""
    ep, sizes = side.ep, sizes_of(side.ep.info)
    while ep.probe(side.peer, tag=len(sizes) - 1) is None:
        pass
    for number in reversed(range(len(sizes))):
        room = np.full(sizes[number], 0xEE, np.uint8)
        assert ep.trecv_into(room, side.peer, tag=number).wait(timeout=TIMEOUT).length == sizes[number]
        assert np.array_equal(room, pattern(sizes[number], number))
    side.sync()


def send_sizes_without_waiting(side: Side, tagged: bool) -> None:
    requests = [
        side.ep.tsend(pattern(size, number), side.peer, tag=number)
        for number, size in enumerate(sizes_of(side.ep.info))
    ]
    ofipy.wait_all(requests, timeout=TIMEOUT)
    side.sync()


@pytest.mark.needs("tagged")
def test_unexpected_messages_of_every_size_in_reverse(sides: Sides) -> None:
    sides.run(send_sizes_without_waiting, receive_sizes_late, True)


# ------------------------------------------------------------------------------------------------------ unknown size


def sizes_unknown(info: ofipy.Info) -> list[int]:
    """Those for which a transport that matches itself, and pins the memory for them, has room: OFIPY_BOUNCE_SIZE."""
    pins = info.offloads_matching and info.ep_type is ofipy.EndpointType.MSG
    return [size for size in sizes_of(info) if size < 2 << 20 or not pins]


def send_unknown(side: Side, tagged: bool) -> None:
    for number, size in enumerate(sizes_unknown(side.ep.info)):
        data = pattern(size, number)
        request = side.ep.tsend(data, side.peer, tag=number) if tagged else side.ep.send(data, side.peer)
        request.wait(timeout=TIMEOUT)
    side.sync()


def receive_unknown(side: Side, tagged: bool) -> None:
    for number, size in enumerate(sizes_unknown(side.ep.info)):
        request = side.ep.trecv(tag=number) if tagged else side.ep.recv()
        message = request.wait(timeout=TIMEOUT)
        assert message.length == len(message.data) == size
        assert message.source == side.peer
        assert message.tag == (number if tagged else 0)
        assert message.data == pattern(size, number).tobytes()
        assert request.wait() is message
    side.sync()


@pytest.mark.datagrams
@pytest.mark.parametrize("tagged", [TAGGED, PLAIN])
def test_unknown_size(sides: Sides, tagged: bool) -> None:
    sides.run(send_unknown, receive_unknown, tagged)


# ------------------------------------------------------------------------------------------------------------- order


def send_mixed(side: Side, seed: int, count: int) -> None:
    generator = random.Random(seed)
    requests = []
    for number in range(count):
        size = generator.choice((8, 8, 40, 100, 3000, 20_000, 150_000))
        data = pattern(size, number)
        data[:4] = np.frombuffer(number.to_bytes(4, "little"), np.uint8)
        requests.append(side.ep.tsend(data, side.peer, tag=generator.randrange(3)))
    ofipy.wait_all(requests, timeout=TIMEOUT)
    side.sync()


def receive_mixed(side: Side, seed: int, count: int) -> None:
    """Messages of one sender match in the order sent, whatever their size and protocol."""
    generator = random.Random(seed)
    sent: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    for number in range(count):
        size = generator.choice((8, 8, 40, 100, 3000, 20_000, 150_000))
        sent[generator.randrange(3)].append((number, size))
    order = [tag for tag, messages in sent.items() for _ in messages]
    random.Random(seed + 1).shuffle(order)
    room = np.empty(200_000, np.uint8)
    for tag in order:
        number, size = sent[tag].pop(0)
        got = side.ep.trecv_into(room, side.peer, tag=tag).wait(timeout=TIMEOUT)
        assert got.length == size
        assert int.from_bytes(room[:4].tobytes(), "little") == number
        assert np.array_equal(room[4:size], pattern(size, number)[4:])
    side.sync()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.needs("tagged")
def test_order_of_one_sender(sides: Sides, seed: int) -> None:
    sides.run(send_mixed, receive_mixed, seed, 300)


# ------------------------------------------------------------------------------------------------------- both ways


def exchange(side: Side, rounds: int, size: int) -> None:
    """Both send first: no side may depend on the other's receive."""
    room = np.empty(size, np.uint8)
    for number in range(rounds):
        mine = pattern(size, 2 * number + side.first)
        send = side.ep.tsend(mine, side.peer, tag=1)
        side.ep.trecv_into(room, side.peer, tag=1).wait(timeout=TIMEOUT)
        send.wait(timeout=TIMEOUT)
        assert np.array_equal(room, pattern(size, 2 * number + (not side.first)))


@pytest.mark.parametrize(("rounds", "size"), [(2000, 8), (300, 4096), (50, 300_000)])
@pytest.mark.needs("tagged")
def test_both_directions_at_once(sides: Sides, rounds: int, size: int) -> None:
    sides.run(exchange, exchange, rounds, size)


def flood(side: Side, count: int) -> None:
    """Far more messages than any ring has slots, while nobody receives yet."""
    requests = [side.ep.tsend(number.to_bytes(8, "little"), side.peer, tag=5) for number in range(count)]
    ofipy.wait_all(requests, timeout=TIMEOUT)
    for _ in range(count // DRAINED):
        side.ep.trecv_into(bytearray(1), side.peer, tag=6).wait(timeout=TIMEOUT)
    side.sync()


def drain(side: Side, count: int) -> None:
    """Receive them all, and tell of each part, so that no wait of the other side is for more than one."""
    room = bytearray(8)
    for number in range(count):
        assert side.ep.trecv_into(room, side.peer, tag=5).wait(timeout=TIMEOUT).length == 8
        assert int.from_bytes(room, "little") == number
        if (number + 1) % DRAINED == 0:
            side.ep.tsend(b"d", side.peer, tag=6).wait(timeout=TIMEOUT)
    side.sync()


@pytest.mark.needs("tagged")
def test_more_messages_than_room(sides: Sides) -> None:
    sides.run(flood, drain, 20_000)


# ------------------------------------------------------------------------------------------------------ other options


def send_with_data(side: Side) -> None:
    for size in (0, 8, 100_000):
        side.ep.tsend(pattern(size), side.peer, tag=3, remote_data=2**64 - 5).wait(timeout=TIMEOUT)
        side.ep.send(pattern(size), side.peer, remote_data=0).wait(timeout=TIMEOUT)
        side.ep.tsend(pattern(size), side.peer, tag=4).wait(timeout=TIMEOUT)


def receive_with_data(side: Side) -> None:
    room = np.empty(100_000, np.uint8)
    for _ in range(3):
        assert side.ep.trecv_into(room, tag=3).wait(timeout=TIMEOUT).remote_data == 2**64 - 5
        assert side.ep.recv_into(room).wait(timeout=TIMEOUT).remote_data == 0
        assert side.ep.trecv_into(room, tag=4).wait(timeout=TIMEOUT).remote_data is None


@pytest.mark.needs("tagged")
def test_remote_data(sides: Sides) -> None:
    sides.run(send_with_data, receive_with_data)


def send_complete(side: Side, level: str) -> None:
    for size in (0, 8, 5000, 1 << 20):
        side.ep.tsend(pattern(size), side.peer, tag=size, complete=level).wait(timeout=TIMEOUT)
    side.sync()


def receive_complete(side: Side, level: str) -> None:
    for size in (0, 8, 5000, 1 << 20):
        room = np.empty(size, np.uint8)
        assert side.ep.trecv_into(room, tag=size).wait(timeout=TIMEOUT).length == size
        assert np.array_equal(room, pattern(size))
    side.sync()


@pytest.mark.parametrize("level", ["transmit", "delivery", "match"])
@pytest.mark.needs("tagged")
def test_completion_levels(sides: Sides, level: str) -> None:
    sides.run(send_complete, receive_complete, level)


def send_unmatched(side: Side, size: int) -> None:
    request = side.ep.tsend(pattern(size), side.peer, tag=77, complete="match")
    with pytest.raises(ofipy.TimedOut):
        request.wait(timeout=0.2)
    side.sync()
    request.wait(timeout=TIMEOUT)


def receive_unmatched(side: Side, size: int) -> None:
    side.sync()
    assert side.ep.trecv_into(bytearray(size), tag=77).wait(timeout=TIMEOUT).length == size


@pytest.mark.parametrize("size", [8, 5000, 300_000])
@pytest.mark.needs("tagged")
def test_match_complete_waits_for_the_receive(sides: Sides, size: int) -> None:
    sides.run(send_unmatched, receive_unmatched, size)


@pytest.mark.needs("tagged")
def test_to_oneself(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    for size in sizes_of(ep.info):
        room = np.zeros(size, np.uint8)
        receive = ep.trecv_into(room, me, tag=size)
        ep.tsend(pattern(size), me, tag=size).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == size
        assert np.array_equal(room, pattern(size))


@pytest.mark.needs("tagged")
def test_several_endpoints_of_one_domain(
    open_endpoint: Callable[..., ofipy.Endpoint], target: Target
) -> None:
    first = open_endpoint()
    domain = first.domain
    cq, av = domain.cq(), domain.av()
    endpoints = [open_endpoint(domain, cq=cq, av=av) for _ in range(8)]
    peers = [av.insert(endpoint.address) for endpoint in endpoints]
    assert len(set(peers)) == 8
    for number, sender in enumerate(endpoints):
        for other, peer in enumerate(peers):
            sender.tsend(bytes([number, other]), peer, tag=other).wait(timeout=TIMEOUT)
    for other, receiver in enumerate(endpoints):
        for number, peer in enumerate(peers):
            room = bytearray(2)
            got = receiver.trecv_into(room, peer, tag=other).wait(timeout=TIMEOUT)
            assert (got.source, bytes(room)) == (peer, bytes([number, other]))


@pytest.mark.needs("source")
@pytest.mark.needs("tagged")
def test_unknown_sender_can_be_answered(open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    server, client = open_endpoint(), open_endpoint()
    client.tsend(b"question", client.insert(server.address), tag=1).wait(timeout=TIMEOUT)
    room = bytearray(8)
    request = server.trecv_into(room, tag=1)
    ofipy.wait_all([request], timeout=TIMEOUT)
    assert request.source is not None
    assert request.source.address.same_endpoint(client.address)
    receive = client.trecv_into(answer := bytearray(6), tag=2)
    server.tsend(b"answer", request.source, tag=2).wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    assert answer == b"answer"


@pytest.mark.pairs
@pytest.mark.needs("tagged")
def test_data_of_a_sender_that_nobody_inserted(open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    """A transport that has senders name themselves in remote CQ data takes the name off, and touches no other data."""
    server, client = open_endpoint(), open_endpoint()
    peer = client.insert(server.address)
    data = [None, 7, None, 32555, 2**64 - 1, None]  # 32555: what would follow from it as a name is 0
    for number, each in enumerate(data):
        client.tsend(bytes(3000 * number), peer, tag=number, remote_data=each)
        client.send(b"plain", peer, remote_data=each)
    for number, each in enumerate(data):
        assert server.trecv(tag=number).wait(timeout=TIMEOUT).remote_data == each
        assert server.recv().wait(timeout=TIMEOUT).remote_data == each


@pytest.mark.needs("tagged")
def test_meeting_by_service(target: Target, open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    name = target.free_service()
    server, client = open_endpoint(service=name), open_endpoint()
    peer = client.insert(f"localhost:{name}")
    # A text does not say which endpoint is there: over several ways an address that does is another peer.
    if not target.over_several_ways:
        assert peer == client.insert(server.address)
    assert str(peer.address) == str(server.address)
    assert client.insert(str(server.address)) == peer
    client.tsend(b"found", peer, tag=1)
    room = bytearray(5)
    server.trecv_into(room, tag=1).wait(timeout=TIMEOUT)
    assert room == b"found"
    with pytest.raises(ofipy.AddressInUse):
        open_endpoint(service=name)
