# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that take message after message."""

import asyncio
import errno
import gc
from collections.abc import Callable

import numpy as np
import pytest
from sides import Side, Sides

import ofipy
from ofipy._operations import messaging

pytestmark = [pytest.mark.needs("multi_recv", of="second"), pytest.mark.connected]

Open = Callable[..., ofipy.Endpoint]
TAG = 7
TIMEOUT = 20
SIZES = (0, 1, 96, 97, 4096, 4097, 70_000)


def pattern(number: int, size: int) -> bytes:
    return bytes((number + index) % 251 for index in range(size))


# ------------------------------------------------------------------------------------------------------ requests


def test_messages_lie_one_behind_the_other(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    buffer = bytearray(1000)
    messages = ep.trecv_many(buffer, tag=TAG)
    for number, size in enumerate((5, 0, 300)):
        ep.tsend(pattern(number, size), me, tag=TAG, remote_data=number).wait(timeout=TIMEOUT)
    offset = 0
    for number, size in enumerate((5, 0, 300)):
        message = messages.next(timeout=TIMEOUT)
        assert message is not None
        assert (message.offset, message.length, message.tag, message.source) == (offset, size, TAG, me)
        assert message.remote_data == number
        assert bytes(message) == pattern(number, size) == buffer[offset : offset + size]
        offset += size
    assert ep.stats().posted_receives == 1
    assert messages.cancel()
    assert messages.next(timeout=TIMEOUT) is None
    assert messages.released
    assert not messages.cancel()


def test_a_message_that_no_memory_could_be_told_of_comes_again(
    ep: ofipy.Endpoint, me: ofipy.Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = ep.trecv_many(bytearray(1000), tag=TAG)
    made, failures = ofipy.MultiReceive._made, [MemoryError(), MemoryError()]

    def fail_first(self: ofipy.MultiReceive, row: bytes) -> object:
        if failures:
            raise failures.pop()
        return made(self, row)

    monkeypatch.setattr(ofipy.MultiReceive, "_made", fail_first)
    for number in range(2):
        ep.tsend(pattern(number, 30), me, tag=TAG).wait(timeout=TIMEOUT)
    for _ in range(2):
        with pytest.raises(MemoryError):
            messages.next(timeout=TIMEOUT)
    for number in range(2):
        message = messages.next(timeout=TIMEOUT)
        assert message is not None
        assert bytes(message) == pattern(number, 30)
    messages.cancel()


def test_iteration_ends_when_little_room_is_left(open_endpoint: Open) -> None:
    ep = open_endpoint(min_multi_recv=100)
    me = ep.insert(ep.address)
    messages = ep.recv_many(bytearray(400))
    for _ in range(4):
        ep.send(b"x" * 75, me).wait(timeout=TIMEOUT)
    assert messages.next(timeout=TIMEOUT) is not None
    ep.send(b"y", me)
    assert [message.offset for message in messages] == [75, 150, 225, 300]
    assert messages.released
    # Of the 99 bytes left none is used.
    ep.send(b"z", me).wait(timeout=TIMEOUT)
    rest = bytearray(1)
    ep.recv_into(rest).wait(timeout=TIMEOUT)
    assert rest == b"z"


def test_a_message_that_does_not_fit_goes_to_the_next_receive(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    first, second = ep.trecv_many(bytearray(200), tag=TAG), ep.trecv_many(bytearray(200), tag=TAG)
    for size in (100, 101):
        ep.tsend(bytes(size), me, tag=TAG).wait(timeout=TIMEOUT)
    assert [message.length for message in first] == [100]
    message = second.next(timeout=TIMEOUT)
    assert message is not None
    assert (message.offset, message.length) == (0, 101)
    second.cancel()


def test_a_message_longer_than_the_buffer_is_truncated(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    messages = ep.trecv_many(bytearray(200), tag=TAG)
    ep.tsend(bytes(201), me, tag=TAG)
    with pytest.raises(ofipy.Truncated) as failed:
        messages.next(timeout=TIMEOUT)
    assert failed.value.length == 201
    assert messages.released


def test_selection_is_that_of_a_receive(open_endpoint: Open) -> None:
    ep = open_endpoint(progress="manual")
    other = open_endpoint(ep.domain, cq=ep.cq, av=ep.av)
    me, there = ep.insert(ep.address), ep.insert(other.address)
    for sender, tag in ((other, 0x10), (ep, 0x11), (other, 0x21), (other, 0x12), (other, 0x13)):
        sender.tsend(bytes([tag]), me, tag=tag).wait(timeout=TIMEOUT)
    with ep.trecv_many(np.zeros(500, np.uint8), there, tag=0x10, ignore=0xF) as messages:
        tags = [messages.next(timeout=TIMEOUT).tag for _ in range(3)]  # type: ignore[union-attr]
        with pytest.raises(ofipy.TimedOut):
            messages.next(timeout=0)
    assert tags == [0x10, 0x12, 0x13]
    # A transport that matches itself does not tell.
    assert ep.stats().unexpected_messages == (0 if ep.info.offloads_matching else 2)


def test_closing_the_endpoint_ends_the_iteration(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    messages = ep.trecv_many(bytearray(200), tag=TAG)
    ep.tsend(b"last", me, tag=TAG).wait(timeout=TIMEOUT)
    while not ep.stats().receives:
        ep.domain.progress()
    ep.close()
    message = messages.next(timeout=TIMEOUT)
    assert message is not None
    assert bytes(message) == b"last"
    with pytest.raises(ofipy.Canceled):
        messages.next(timeout=TIMEOUT)
    assert messages.released


def test_dropping_one_cancels_it_and_keeps_the_buffer_until_then(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    buffer = bytearray(200)
    ep.trecv_many(buffer, tag=TAG)
    gc.collect()
    assert ep.stats().posted_receives == 0
    buffer.append(0)  # no longer exported
    ep.tsend(b"later", me, tag=TAG).wait(timeout=TIMEOUT)
    room = bytearray(5)
    ep.trecv_into(room, tag=TAG).wait(timeout=TIMEOUT)
    assert room == b"later"


@pytest.mark.parametrize("buffer", [b"read-only", [bytearray(9), bytearray(9)], 5, np.zeros((4, 4))[:, 1]])
def test_what_is_no_buffer_for_many(ep: ofipy.Endpoint, buffer: object) -> None:
    with pytest.raises(ofipy.BufferTypeError):
        ep.trecv_many(buffer)
    assert ep.stats().posted_receives == 0


def test_await(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    async def collect() -> list[bytes]:
        messages = ep.trecv_many(bytearray(300), tag=TAG)
        found: list[bytes] = []
        # Nothing is lost when waiting is given up.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(messages), 0.01)
        sender = asyncio.create_task(send())
        async for message in messages:
            found.append(bytes(message))
        await sender
        return found

    async def send() -> None:
        for number in range(5):
            await asyncio.sleep(0)
            await ep.tsend(pattern(number, 50), me, tag=TAG)

    assert asyncio.run(asyncio.wait_for(collect(), TIMEOUT)) == [pattern(number, 50) for number in range(5)]


# --------------------------------------------------------------------------------------------------------- raw tier


def rows_of(ep: ofipy.Endpoint, count: int) -> np.ndarray:
    batch = ep.cq.batch(count)
    return batch.wait(min=count, timeout=TIMEOUT)


def test_raw_completions(open_endpoint: Open) -> None:
    ep = open_endpoint(selective_completion=True)
    me, memory = ep.insert(ep.address), np.zeros(200, np.uint8)
    with ep.register(memory) as region:
        ep.post_trecv(region, tag=TAG, context=9, flags="multi_recv|completion")
        for number in range(3):
            ep.tsend(pattern(number, 50), me, tag=TAG).wait(timeout=TIMEOUT)
        rows = rows_of(ep, 3)
        received = ofipy.Completed.RECV | ofipy.Completed.TAGGED
        assert rows["context"].tolist() == [9, 9, 9]
        assert rows["buffer_offset"].tolist() == [0, 50, 100]
        assert rows["flags"].tolist() == [received, received, received | ofipy.Completed.MULTI_RECV]
        assert memory[:150].tobytes() == b"".join(pattern(number, 50) for number in range(3))


def test_raw_cancel_releases_the_buffer(ep: ofipy.Endpoint) -> None:
    with ep.register(bytearray(100)) as region:
        ep.post_recv(region, context=3, flags="multi_recv")
        assert ep.cancel(3)
        row = rows_of(ep, 1)[0]
        assert row["flags"] == ofipy.Completed.MULTI_RECV
        assert (row["error"], row["context"]) == (errno.ECANCELED, 3)
        assert not ep.cancel(3)


def test_it_cannot_be_prepared_nor_mixed_with_a_look(ep: ofipy.Endpoint) -> None:
    with ep.register(bytearray(100)) as region, pytest.raises(ofipy.InvalidArgument):
        ep.post_trecv(region, flags="multi_recv|peek")
    with pytest.raises(ofipy.InvalidArgument):
        messaging._prepare(ep, ofipy.Op.TRECV, bytearray(10), None, 0, 0, None, None, "multi_recv")


# ------------------------------------------------------------------------------------------------------- two sides

ROUNDS = 40


def send_sizes(side: Side) -> None:
    side.sync()
    requests = []
    for number in range(ROUNDS):
        size = SIZES[number % len(SIZES)]
        requests.append(side.ep.tsend(pattern(number, size), side.peer, tag=TAG))
    for request in requests:
        request.wait(timeout=TIMEOUT)
    side.sync()


def receive_sizes(side: Side) -> int:
    buffers = [side.ep.empty(150_000) if number % 2 else bytearray(150_000) for number in range(3)]
    posted = [side.ep.trecv_many(buffer, side.peer, tag=TAG) for buffer in buffers]
    side.sync()
    number = 0
    while number < ROUNDS:
        messages, came = posted.pop(0), []
        for message in messages:
            came.append((message.offset, bytes(message)))
            if number + len(came) == ROUNDS:
                break
        # Their places follow the order of sending; a long one may take longer than a short one behind it.
        offset = 0
        for place, content in sorted(came):
            size = SIZES[number % len(SIZES)]
            assert (place, content) == (offset, pattern(number, size))
            offset += size
            number += 1
        # The order of the buffers is that of posting.
        posted.append(side.ep.trecv_many(bytearray(150_000), side.peer, tag=TAG))
    side.sync()
    return number


def test_many_sizes_into_several_buffers(sides: Sides) -> None:
    assert sides.run(send_sizes, receive_sizes)[1] == ROUNDS


def send_and_leave(side: Side) -> None:
    side.sync()
    side.ep.tsend(b"goodbye", side.peer, tag=TAG).wait(timeout=TIMEOUT)
    side.ep.close()


def receive_until_lost(side: Side) -> bytes:
    messages = side.ep.trecv_many(bytearray(1000), side.peer, tag=TAG)
    side.sync()
    message = messages.next(timeout=TIMEOUT)
    assert message is not None
    with pytest.raises(ofipy.PeerLost):
        messages.next(timeout=TIMEOUT)
    assert messages.released
    return bytes(message)


def test_the_loss_of_a_named_source_releases_the_buffer(sides: Sides) -> None:
    assert sides.run(send_and_leave, receive_until_lost)[1] == b"goodbye"
