# SPDX-License-Identifier: BSD-3-Clause
"""Which message goes to which receive: tags, masks, sources, order; looking, setting aside, dropping."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sides import Side, Sides

import ofipy
from ofipy import COMPLETION_DTYPE, Flag, Op

pytestmark = pytest.mark.connected

TIMEOUT = 30

OpenEndpoint = Callable[..., ofipy.Endpoint]


def finish(*requests: ofipy.Request) -> list[Any]:
    return ofipy.wait_all(requests, timeout=TIMEOUT)


def received(room: Any) -> bytes:
    return bytes(room).rstrip(b"\0")


# ---------------------------------------------------------------------------------------------------- tags and masks


@pytest.mark.parametrize("late", [False, True], ids=["posted", "unexpected"])
@pytest.mark.parametrize(
    ("tag", "ignore", "expected"),
    [
        (0x12, 0, b"two"),
        (0x10, 0x0F, b"one"),
        (0x00, 2**64 - 1, b"one"),
        (2**63 + 1, 0, b"three"),
        (1, 2**63, b"three"),
        (0x10, 0x02, b"two"),
    ],
)
def test_mask(ep: ofipy.Endpoint, me: ofipy.Peer, tag: int, ignore: int, expected: bytes, late: bool) -> None:
    room = bytearray(8)
    messages = [(0x11, b"one"), (0x12, b"two"), (2**63 + 1, b"three")]
    receive = None if late else ep.trecv_into(room, me, tag=tag, ignore=ignore)
    finish(*(ep.tsend(data, me, tag=its_tag) for its_tag, data in messages))
    receive = receive or ep.trecv_into(room, me, tag=tag, ignore=ignore)
    got = finish(receive)[0]
    assert received(room) == expected
    assert got.tag == {data: its_tag for its_tag, data in messages}[expected]
    assert got.length == len(expected)


def test_tagged_and_plain_messages_never_meet(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    plain, tagged = bytearray(8), bytearray(8)
    receives = ep.recv_into(plain), ep.trecv_into(tagged, ignore=2**64 - 1)
    finish(ep.tsend(b"tagged", me, tag=0), ep.send(b"plain", me), *receives)
    assert (received(plain), received(tagged)) == (b"plain", b"tagged")


def test_receive_posted_first_wins(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """Exact, masked and any-source receives that all match take messages in the order they were posted."""
    rooms = [bytearray(8) for _ in range(6)]
    receives = [
        ep.trecv_into(rooms[0], tag=5, ignore=0xFF),
        ep.trecv_into(rooms[1], me, tag=5),
        ep.trecv_into(rooms[2], tag=5),
        ep.trecv_into(rooms[3], me, tag=0, ignore=2**64 - 1),
        ep.trecv_into(rooms[4], me, tag=5),
        ep.trecv_into(rooms[5], tag=4, ignore=1),
    ]
    finish(*(ep.tsend(b"%d" % number, me, tag=5) for number in range(6)), *receives)
    assert [received(room) for room in rooms] == [b"%d" % number for number in range(6)]


def test_message_that_arrived_first_wins(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    finish(*(ep.tsend(b"%d" % number, me, tag=number % 2) for number in range(6)))
    taken = []
    for tag, ignore in ((1, 0), (0, 1), (0, 0), (1, 2**64 - 1), (0, 0), (0, 2**64 - 1)):
        room = bytearray(8)
        finish(ep.trecv_into(room, me, tag=tag, ignore=ignore))
        taken.append(received(room))
    assert taken == [b"1", b"0", b"2", b"3", b"4", b"5"]


@pytest.mark.needs("directed_recv")
@pytest.mark.parametrize("late", [False, True], ids=["posted", "unexpected"])
def test_directed_receive(open_endpoint: OpenEndpoint, late: bool) -> None:
    receiver, one, two = (open_endpoint() for _ in range(3))
    sources = [receiver.insert(sender.address) for sender in (one, two)]
    rooms = [bytearray(8), bytearray(8), bytearray(8)]

    def post() -> list[ofipy.Request]:
        return [
            receiver.trecv_into(rooms[0], sources[1], tag=1),
            receiver.trecv_into(rooms[1], sources[0], tag=1),
            receiver.trecv_into(rooms[2], tag=2),
        ]

    receives = [] if late else post()
    for name, sender in ((b"one", one), (b"two", two)):
        finish(sender.tsend(name, sender.insert(receiver.address), tag=1))
    finish(two.tsend(b"last", two.insert(receiver.address), tag=2))
    got = finish(*(receives or post()))
    assert [received(room) for room in rooms] == [b"two", b"one", b"last"]
    assert [each.source for each in got] == [sources[1], sources[0], sources[1]]


def test_unknown_index_is_refused(ep: ofipy.Endpoint) -> None:
    with pytest.raises(ofipy.UnknownPeer):
        ep.tsend(b"x", 12345, tag=1)
    with pytest.raises(ofipy.UnknownPeer):
        ep.trecv_into(bytearray(1), 12345, tag=1)


# ---------------------------------------------------------------------------------------------------------- truncation


@pytest.mark.parametrize("late", [False, True], ids=["posted", "unexpected"])
@pytest.mark.parametrize(
    ("size", "room_size"), [(2, 1), (90, 0), (5000, 96), (20_000, 19_999), (1 << 20, 4096)]
)
def test_truncation_tells_the_true_length(
    ep: ofipy.Endpoint, me: ofipy.Peer, size: int, room_size: int, late: bool
) -> None:
    data = np.arange(size, dtype=np.uint32).astype(np.uint8)
    memory = np.full(room_size + 64, 0xEE, np.uint8)
    receive = None if late else ep.trecv_into(memory[:room_size], me, tag=1)
    send = ep.tsend(data, me, tag=1)
    receive = receive or ep.trecv_into(memory[:room_size], me, tag=1)
    with pytest.raises(ofipy.Truncated) as caught:
        receive.wait(timeout=TIMEOUT)
    assert caught.value.length == size
    assert caught.value.peer == str(ep.address)
    assert np.array_equal(memory[:room_size], data[:room_size])
    assert (memory[room_size:] == 0xEE).all()
    send.wait(timeout=TIMEOUT)
    room = bytearray(3)
    finish(ep.trecv_into(room, me, tag=2), ep.tsend(b"ok!", me, tag=2))
    assert room == b"ok!"


# -------------------------------------------------------------------------------------------------------------- cancel


def test_cancel_of_a_receive(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    rooms = [bytearray(4), bytearray(4)]
    receives = [ep.trecv_into(room, me, tag=1) for room in rooms]
    assert receives[0].cancel()
    with pytest.raises(ofipy.Canceled):
        receives[0].wait(timeout=TIMEOUT)
    assert not receives[0].cancel()
    finish(ep.tsend(b"here", me, tag=1), receives[1])
    assert rooms == [bytearray(4), bytearray(b"here")]
    assert not receives[1].cancel()


def test_posted_receive_is_cancelled_by_context_newest_first(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(bytearray(16))
    for offset in (0, 8):
        ep.post_trecv(region[offset : offset + 8], me, tag=1, context=99)
    assert not ep.cancel(98)
    assert ep.cancel(99)
    row = ep.cq.wait(timeout=TIMEOUT)[0]
    assert row["context"] == 99
    assert isinstance(ep.cq.exception(row), ofipy.Canceled)
    finish(ep.tsend(b"first", me, tag=1))
    row = ep.cq.wait(timeout=TIMEOUT)[0]
    assert (row["context"], row["error"], row["length"]) == (99, 0, 5)
    assert received(region.array[:8]) == b"first"
    assert not ep.cancel(99)


# ----------------------------------------------------------------------------------- looking, setting aside, dropping


def ask(ep: ofipy.Endpoint, flags: Flag, context: int, room: Any = b"", **options: Any) -> np.void:
    """Post one receive with flags and return its completion."""
    operation = ep.domain.operations(1)
    operation["op"], operation["flags"], operation["context"] = Op.TRECV, int(flags), context
    operation["peer"] = 0xFFFFFFFF
    if room:
        address = np.frombuffer(room, np.uint8).__array_interface__["data"][0]
        operation["offset"], operation["length"] = address, len(room)
    for name, value in options.items():
        operation[name] = value
    assert ep.post(operation) == 1
    row = ep.cq.wait(timeout=TIMEOUT)[0].copy()
    assert row["context"] == context
    assert row.dtype == COMPLETION_DTYPE
    return row


def wait_unexpected(ep: ofipy.Endpoint, tag: int) -> None:
    while ep.probe(tag=tag) is None:
        pass


SIZES = [5, 3000, 400_000]


@pytest.mark.parametrize("size", SIZES)
def test_peek_claim_and_receive(ep: ofipy.Endpoint, me: ofipy.Peer, size: int) -> None:
    data = np.arange(size, dtype=np.uint32).astype(np.uint8)
    assert ask(ep, Flag.PEEK, 1, tag=7)["error"] != 0
    sends = [ep.tsend(data, me, tag=7), ep.tsend(b"second", me, tag=7)]
    wait_unexpected(ep, 7)
    for _ in range(2):
        row = ask(ep, Flag.PEEK, 2, tag=7)
        assert (row["error"], row["length"], row["tag"], row["source"]) == (0, size, 7, me)
    claimed = ask(ep, Flag.PEEK | Flag.CLAIM, 3, tag=7)
    assert claimed["length"] == size
    assert int(claimed["flags"]) & ofipy.Completed.CLAIM
    room = bytearray(6)
    finish(ep.trecv_into(room, tag=7))
    assert room == b"second"
    whole = bytearray(size)
    row = ask(ep, Flag.CLAIM, 3, whole)
    assert (row["error"], row["length"]) == (0, size)
    assert whole == data.tobytes()
    finish(*sends)


@pytest.mark.parametrize("size", SIZES)
def test_discard(ep: ofipy.Endpoint, me: ofipy.Peer, size: int) -> None:
    sends = [ep.tsend(bytes(size), me, tag=7) for _ in range(2)] + [ep.tsend(b"kept", me, tag=7)]
    wait_unexpected(ep, 7)
    assert ask(ep, Flag.PEEK | Flag.DISCARD, 4, tag=7)["length"] == size
    wait_unexpected(ep, 7)
    claimed = ask(ep, Flag.PEEK | Flag.CLAIM, 5, tag=7)
    assert claimed["length"] == size
    assert ask(ep, Flag.CLAIM | Flag.DISCARD, 5)["error"] == 0
    room = bytearray(4)
    finish(ep.trecv_into(room, tag=7), *sends)
    assert room == b"kept"
    assert ep.stats().unexpected_messages == 0


def test_claim_of_nothing_is_refused(ep: ofipy.Endpoint) -> None:
    operation = ep.domain.operations(1)
    operation["op"], operation["flags"], operation["context"] = Op.TRECV, int(Flag.CLAIM), 1
    with pytest.raises(ofipy.FabricError):
        ep.post(operation)


def test_hold_keeps_its_place_in_the_order(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    first, room = ep.trecv(tag=3), bytearray(8)
    second = ep.trecv_into(room, tag=3)
    finish(ep.tsend(b"one", me, tag=3), ep.tsend(b"two", me, tag=3))
    message, _ = finish(first, second)
    assert (message.data, received(room)) == (b"one", b"two")


@pytest.mark.parametrize("size", SIZES)
def test_cancelled_receive_of_unknown_size_puts_the_message_back(
    ep: ofipy.Endpoint, me: ofipy.Peer, size: int
) -> None:
    held = ep.trecv(tag=3)
    sends = [ep.tsend(bytes([1]) * size, me, tag=3), ep.tsend(b"later", me, tag=3)]
    while ep.stats().posted_receives:
        ep.domain.progress()
    assert held.cancel()
    with pytest.raises(ofipy.Canceled):
        held.wait(timeout=TIMEOUT)
    messages = finish(ep.trecv(tag=3), ep.trecv(tag=3))
    assert [message.data for message in messages] == [bytes([1]) * size, b"later"]
    finish(*sends)


@pytest.mark.parametrize("posted", ["buffer", "unknown size"])
def test_message_given_back_is_for_the_oldest_receive_that_matches(
    ep: ofipy.Endpoint, me: ofipy.Peer, posted: str
) -> None:
    held, rooms = ep.trecv(tag=3), [bytearray(4) for _ in range(3)]
    other = ep.trecv_into(rooms[0], tag=4)
    if posted == "buffer":
        first: Any = ep.trecv_into(rooms[1], me, tag=3)
    else:
        first = ep.trecv(me, tag=2, ignore=1)
    second = ep.trecv_into(rooms[2], tag=3)
    finish(ep.tsend(b"one!", me, tag=3))
    while ep.stats().posted_receives > 3:
        ep.domain.progress()
    assert held.cancel()
    got = finish(first)[0]
    assert bytes(rooms[1] if posted == "buffer" else got.data) == b"one!"
    assert ep.stats().posted_receives == 2
    finish(ep.tsend(b"two!", me, tag=3), ep.tsend(b"four", me, tag=4), second, other)
    assert rooms[2] == b"two!"
    assert rooms[0] == b"four"


def test_message_given_back_stays_ahead_of_later_ones(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    held = ep.trecv(tag=3)
    finish(ep.tsend(b"one", me, tag=3), ep.tsend(b"two", me, tag=3), ep.tsend(b"three", me, tag=3))
    while ep.stats().posted_receives:
        ep.domain.progress()
    assert held.cancel()
    found = ep.probe(tag=3)
    assert found is not None
    assert found.length == 3
    room = bytearray(5)
    finish(ep.trecv_into(room, tag=3))
    assert received(room) == b"one"
    assert [ep.trecv(me, tag=3).wait(timeout=TIMEOUT).data for _ in range(2)] == [b"two", b"three"]


def test_unknown_size_has_a_bound_where_the_transport_matches(
    open_endpoint: Callable[..., ofipy.Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFIPY_BOUNCE_SIZE", "1000")
    ep = open_endpoint()
    me = ep.insert(ep.address)
    for size in (0, 999, 1000):
        finish(ep.tsend(bytes(size), me, tag=1))
        assert finish(ep.trecv(tag=1))[0].length == size
    long, short = ep.trecv(tag=1), ep.trecv(tag=1)
    sends = [ep.tsend(bytes(size), me, tag=1) for size in (1001, 4)]
    if ep.info.offloads_matching:
        with pytest.raises(ofipy.Truncated, match="OFIPY_BOUNCE_SIZE"):
            long.wait(timeout=TIMEOUT)
    else:
        assert finish(long)[0].length == 1001
    assert finish(short)[0].length == 4
    finish(*sends)


def test_dropped_receive_of_unknown_size_takes_no_message(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    held, never = ep.trecv(tag=3), ep.trecv(tag=4)
    finish(ep.tsend(b"precious", me, tag=3))
    while ep.stats().posted_receives > 1:
        ep.domain.progress()
    del held, never
    assert ep.trecv(tag=3).wait(timeout=TIMEOUT).data == b"precious"
    assert ep.stats().posted_receives == 0


def test_probe(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    assert ep.probe(tag=1) is None
    finish(ep.tsend(b"tagged", me, tag=1, remote_data=5), ep.tsend(b"other", me, tag=2))
    wait_unexpected(ep, 1)
    for _ in range(2):
        found = ep.probe(tag=0, ignore=1)
        assert found is not None
        assert (found.length, found.tag, found.source, found.remote_data) == (6, 1, me, 5)
    dropped = ep.probe(tag=2, discard=True)
    assert dropped is not None
    assert dropped.length == 5
    assert ep.probe(tag=2) is None
    assert ep.trecv(tag=1).wait(timeout=TIMEOUT).data == b"tagged"
    assert ep.probe(tag=0, ignore=3) is None


def test_probe_of_untagged_messages(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    assert ep.probe(tagged=False) is None
    finish(ep.send(b"plain", me), ep.tsend(b"tagged", me, tag=1))
    wait_unexpected(ep, 1)
    plain = ep.probe(tagged=False, discard=True)
    assert plain is not None
    assert plain.length == 5
    assert ep.probe(tagged=False) is None


# ------------------------------------------------------------------------------------------ dropped, across processes

DROPPED_SIZES = (5000, 200_000, 4 << 20)
LOOKS = 6


def send_three(side: Side) -> None:
    for size in DROPPED_SIZES:
        for _ in range(LOOKS):
            finish(*(side.ep.tsend(bytes(length), side.peer, tag=3) for length in (size, 4, 5)))
    side.sync()  # what was sent may wait here to leave


def drop_and_receive(side: Side) -> None:
    for size in DROPPED_SIZES:
        for looks in range(LOOKS):
            held = side.ep.trecv(side.peer, tag=3)
            for _ in range(looks):
                held.test()
            if held.done:
                lengths = [finish(held)[0].length]
            else:
                lengths = []
                del held
            while len(lengths) < 3:
                lengths.append(finish(side.ep.trecv(side.peer, tag=3))[0].length)
            assert lengths == [size, 4, 5], f"{lengths} for {size} after {looks} looks"
    side.sync()


@pytest.mark.needs("core_matching")
def test_message_of_a_dropped_receive_stays_ahead_of_later_ones(sides: Sides) -> None:
    """Wherever it is: not there yet, held, or on its way into memory."""
    sides.run(send_three, drop_and_receive)


# ------------------------------------------------------------------------------------------- depth, across processes


def send_deep(side: Side, depth: int) -> None:
    ofipy.wait_all(
        [side.ep.tsend(tag.to_bytes(8, "little"), side.peer, tag=tag) for tag in range(depth)],
        timeout=TIMEOUT,
    )
    side.sync()


def receive_deep(side: Side, depth: int) -> None:
    rooms = np.zeros(depth, np.uint64)
    requests = [
        side.ep.trecv_into(rooms[tag : tag + 1], side.peer, tag=tag) for tag in reversed(range(depth))
    ]
    ofipy.wait_all(requests, timeout=TIMEOUT)
    assert np.array_equal(rooms, np.arange(depth, dtype=np.uint64))
    side.sync()


def test_many_posted_receives(sides: Sides) -> None:
    sides.run(send_deep, receive_deep, 10_000)


@pytest.mark.needs("core_matching")
def test_each_receive_counts_once(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    """Looking for a message, holding and dropping it transfers nothing."""
    receives = 0
    for late in (False, True):
        for size in (5, 100_000):
            request = None if late else ep.trecv(tag=1)
            sent = ep.tsend(bytes(size), me, tag=1)
            if request is None:
                wait_unexpected(ep, 1)
                request = ep.trecv(tag=1)
            assert request.wait(timeout=TIMEOUT).length == size
            sent.wait(timeout=TIMEOUT)
            receives += size
    finish(ep.tsend(b"dropped", me, tag=2))
    wait_unexpected(ep, 2)
    ep.probe(tag=2, discard=True)
    assert (ep.stats().receives, ep.stats().bytes_received) == (4, receives)
