# SPDX-License-Identifier: BSD-3-Clause
"""Receive contexts that several endpoints share."""

import asyncio
import errno
from collections.abc import Iterator

import pytest
from sides import Target

import ofipy

TIMEOUT = 20
TAG = 7


class Shared:
    """One context, two endpoints on it, and a sender."""

    def __init__(self, target: Target) -> None:
        self.fabric = ofipy.Fabric(target.info())
        self.domain = self.fabric.domain()
        self.context = self.domain.receive_context()
        self.endpoints = [self.domain.endpoint(rx=self.context).enable() for _ in range(2)]
        self.sender = self.domain.endpoint().enable()
        self.there = [self.sender.insert(endpoint.address) for endpoint in self.endpoints]
        self.source = self.context.av.insert(self.sender.address)

    def send(self, number: int, payload: bytes, tag: int = TAG) -> ofipy.Request:
        return self.sender.tsend(payload, self.there[number], tag=tag)


@pytest.fixture
def shared(target: Target) -> Iterator[Shared]:
    made = Shared(target)
    yield made
    made.fabric.close()


shared_context = pytest.mark.needs("shared_context")


@shared_context
@pytest.mark.parametrize("size", [5, 70_000])
def test_receives_take_messages_of_every_endpoint(shared: Shared, size: int) -> None:
    buffers = [bytearray(size) for _ in range(4)]
    requests = [shared.context.trecv_into(buffer, tag=TAG) for buffer in buffers]
    for number in range(4):
        sent = shared.send(number % 2, bytes([number]) * size)
        got = requests[number].wait(timeout=TIMEOUT)
        sent.wait(timeout=TIMEOUT)
        assert (got.length, got.source) == (size, shared.source)
        assert buffers[number] == bytes([number]) * size
    assert [endpoint.stats().receives for endpoint in shared.endpoints] == [2, 2]


@shared_context
def test_receives_that_name_a_removed_peer_are_cancelled(shared: Shared) -> None:
    directed, any_source = (
        shared.context.trecv_into(bytearray(8), source, tag=TAG) for source in (shared.source, None)
    )
    shared.context.av.remove(shared.source)
    with pytest.raises(ofipy.Canceled):
        directed.wait(timeout=TIMEOUT)
    shared.send(0, b"any").wait(timeout=TIMEOUT)
    assert any_source.wait(timeout=TIMEOUT).length == 3


@shared_context
def test_messages_that_came_first_are_received_in_order(shared: Shared) -> None:
    for number in range(4):
        shared.send(number % 2, bytes([number])).wait(timeout=TIMEOUT)
        while shared.endpoints[0].stats().unexpected_messages <= number:
            shared.domain.progress()
    for number in range(4):
        message = shared.context.trecv(shared.source, tag=TAG).wait(timeout=TIMEOUT)
        assert bytes(message) == bytes([number])


@shared_context
def test_held_messages_are_claimed_through_the_context(shared: Shared) -> None:
    before = shared.context.trecv(tag=1)
    shared.send(1, b"x" * 9000, tag=1)
    assert bytes(before.wait(timeout=TIMEOUT)) == b"x" * 9000
    given_back = shared.context.trecv(tag=2)
    shared.send(0, b"again", tag=2).wait(timeout=TIMEOUT)
    while not shared.endpoints[0].stats().unexpected_messages:
        shared.domain.progress()
    assert given_back.cancel()
    assert bytes(shared.context.trecv(tag=2).wait(timeout=TIMEOUT)) == b"again"


@shared_context
def test_completions_name_the_endpoint(shared: Shared) -> None:
    with shared.domain.register(bytearray(10)) as region:
        for number in (1, 0):
            shared.context.post_trecv(region, tag=TAG, context=40 + number)
            shared.send(number, b"here").wait(timeout=TIMEOUT)
            row = shared.endpoints[number].cq.wait(timeout=TIMEOUT)[0]
            assert (row["context"], row["endpoint"]) == (40 + number, shared.endpoints[number].id)
        shared.context.post_recv(region, context=5)
        assert shared.context.cancel(5)
        row = shared.context.cq.wait(timeout=TIMEOUT)[0]
        assert (row["error"], row["endpoint"]) == (errno.ECANCELED, shared.context.id)


@shared_context
def test_closing_an_endpoint_leaves_the_receives(shared: Shared) -> None:
    request = shared.context.trecv_into(bytearray(10), tag=TAG)
    shared.endpoints[0].close()
    assert not request.test()
    shared.send(1, b"other").wait(timeout=TIMEOUT)
    assert request.wait(timeout=TIMEOUT).length == 5


@shared_context
def test_closing_the_context_closes_its_endpoints_first(shared: Shared) -> None:
    request = shared.context.trecv_into(bytearray(10), tag=TAG)
    shared.context.close()
    assert all(endpoint.closed for endpoint in shared.endpoints)
    with pytest.raises(ofipy.Canceled):
        request.wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Closed):
        shared.context.trecv(tag=TAG)


@shared_context
def test_many_and_await(shared: Shared) -> None:
    async def collect() -> list[bytes]:
        messages = shared.context.trecv_many(bytearray(100), tag=TAG)
        for number in range(4):
            await shared.send(number % 2, bytes([number]))
        found = [bytes(await anext(messages)) for _ in range(4)]
        messages.cancel()
        return sorted(found)

    assert asyncio.run(asyncio.wait_for(collect(), TIMEOUT)) == [bytes([number]) for number in range(4)]


@shared_context
def test_each_does_its_own_part(shared: Shared) -> None:
    with pytest.raises(ofipy.NotSupported):
        shared.context.tsend(b"", shared.source)
    with pytest.raises(ofipy.NotSupported):
        shared.endpoints[0].trecv_into(bytearray(1))
    with pytest.raises(ofipy.UnknownPeer):
        shared.context.trecv_into(bytearray(1), 1000)
    with pytest.raises(ofipy.InvalidArgument):
        shared.domain.endpoint(rx=shared.context, av=shared.domain.av()).enable()


def test_where_the_transport_matches_there_is_none(target: Target) -> None:
    with ofipy.Fabric(target.info()) as fabric, fabric.domain() as domain:
        if ofipy.Cap.SHARED_CONTEXT in target.info().caps:
            with domain.receive_context() as context:
                assert not context.closed
        else:
            with pytest.raises(ofipy.NotSupported):
                domain.receive_context()
