# SPDX-License-Identifier: BSD-3-Clause
"""Linger: what was posted and not waited for leaves before its endpoint closes, and what did not leave is told once."""

import _thread
import asyncio
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sides import Side, Sides, Target

import ofipy
from tests.timers import running

OpenEndpoint = Callable[..., ofipy.Endpoint]
TIMEOUT = 30
# Seconds that no test reaches, as long as nothing is waited for in vain.
LONG = 600
# What no transport takes without a receive: more than sockets and rings hold.
STUCK = 48 << 20

pytestmark = [pytest.mark.needs("directed_recv")]


def stuck_send(ep: ofipy.Endpoint, other: ofipy.Endpoint) -> ofipy.Peer:
    """Post what does not leave, since nobody receives it, to a peer that is up."""
    if ep.provider.startswith("ofi:"):
        # And closing an endpoint of libfabric's tcp in the middle of such a message ends in a second free() of it.
        pytest.skip("libfabric keeps messages of any size that nobody receives, so each one leaves")
    peer = ep.insert(other.address)
    receive = other.trecv_into(bytearray(1), tag=1)
    ep.tsend(b"x", peer, tag=1).wait(timeout=TIMEOUT)
    receive.wait(timeout=TIMEOUT)
    ep.tsend(np.zeros(STUCK, np.uint8), peer, tag=2)
    return peer


# ------------------------------------------------------------------------------------------------------- it leaves


def receive_all(side: Side, sizes: list[int]) -> None:
    rooms = [np.zeros(size, np.uint8) for size in sizes]
    receives = [side.receive(room, tag=number + 1) for number, room in enumerate(rooms)]
    side.sync()
    for number, (receive, room) in enumerate(zip(receives, rooms, strict=True)):
        assert receive.wait(timeout=TIMEOUT).length == room.nbytes
        assert np.all(room == number + 1)


def send_and_close(side: Side, sizes: list[int]) -> None:
    side.sync()
    for number, size in enumerate(sizes):
        side.send(np.full(size, number + 1, np.uint8), tag=number + 1)
    side.ep.fabric.close(linger=LONG)


@pytest.mark.pairs
@pytest.mark.parametrize("sizes", [[8], [4000], [65536], [4 << 20], [8, 1 << 20, 100, 70000] * 8])
def test_sends_arrive(sides: Sides, sizes: list[int]) -> None:
    sides.run(receive_all, send_and_close, sizes)


def test_the_peer_may_live_in_the_same_domain_or_thread(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint(progress="manual")
    for other in (open_endpoint(ep.domain), open_endpoint(progress="manual")):
        sender = open_endpoint(ep.domain)
        room, data = np.zeros(1 << 20, np.uint8), np.full(1 << 20, 7, np.uint8)
        receive = other.trecv_into(room, tag=1)
        sender.tsend(data, sender.insert(other.address), tag=1)
        sender.close(linger=LONG)
        assert receive.wait(timeout=TIMEOUT).length == room.nbytes
        assert np.array_equal(room, data)


@pytest.mark.needs("rma")
def test_writes_arrive(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    memory = np.zeros(1 << 20, np.uint8)
    region = other.register(memory, access="remote_write")
    peer, remote = ep.insert(other.address), region.remote
    for _ in range(8):
        ep.write(np.full(memory.nbytes, 9, np.uint8), peer, remote)
    ep.fabric.close(linger=LONG)
    deadline = time.monotonic() + TIMEOUT
    while not np.all(memory == 9):
        assert time.monotonic() < deadline
        other.domain.progress()


def test_an_event_loop_goes_on_meanwhile(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()

    async def main() -> None:
        turns = 0
        peer = stuck_send(ep, other)
        closing = asyncio.ensure_future(ep.aclose(linger=LONG))
        while turns < 50:
            await asyncio.sleep(0)
            turns += 1
        assert not closing.done()
        room = np.zeros(STUCK, np.uint8)
        receive = other.trecv_into(room, tag=2)
        await closing
        assert ep.closed
        assert (await receive).length == STUCK
        with pytest.raises(ofipy.Closed):
            ep.tsend(b"", peer, tag=3)

    asyncio.run(main())


def test_leaving_async_with_lingers(open_endpoint: OpenEndpoint) -> None:
    other = open_endpoint()
    receive = other.trecv_into(bytearray(1 << 20), tag=1)

    async def main() -> None:
        async with open_endpoint() as ep:
            ep.tsend(np.zeros(1 << 20, np.uint8), ep.insert(other.address), tag=1)
        assert ep.closed

    asyncio.run(main())
    assert receive.wait(timeout=TIMEOUT).length == 1 << 20


# ---------------------------------------------------------------------------------------------------------- it is told


def test_what_nobody_receives_is_told(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = stuck_send(ep, other)
    address = str(peer.address)
    with pytest.raises(ofipy.NotSent) as caught:
        ep.fabric.close(linger=0.3)
    assert ep.closed
    assert ep.fabric.closed
    assert caught.value.count == 1
    assert caught.value.operations == ("tsend",)
    assert caught.value.peers == (address,)
    ep.fabric.close()  # once


def test_without_linger_nothing_is_said(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ep.fabric.close(linger=0)


def test_the_parameter_is_the_default(open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)
    monkeypatch.setenv("OFIPY_LINGER", "0")
    ep.fabric.close()
    another = open_endpoint()
    stuck_send(another, other)
    monkeypatch.setenv("OFIPY_LINGER", "1")
    with pytest.raises(ofipy.NotSent):
        another.close()


def test_an_exception_on_its_way_goes_on(
    open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFIPY_LINGER", "1")
    other = open_endpoint()

    def use() -> None:
        with open_endpoint() as ep:
            stuck_send(ep, other)
            raise KeyError("mine")

    with (
        pytest.warns(ResourceWarning, match=r"1 operation \(tsend\) to .* had not left"),
        pytest.raises(KeyError, match="mine"),
    ):
        use()


def test_a_peer_that_goes_ends_it(open_endpoint: OpenEndpoint, target: Target) -> None:
    if target.provider.startswith("ofi:"):
        pytest.skip("the transport does not tell that a peer has gone")
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)
    going = threading.Timer(0.2, lambda: other.fabric.close(linger=0))
    going.start()
    with pytest.raises(ofipy.NotSent) as caught:
        ep.close(linger=LONG)
    going.join()
    assert caught.value.count == 1


def test_a_running_loop_is_not_held_up(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)

    async def main() -> None:
        with pytest.warns(ResourceWarning, match="await aclose"):
            ep.close(linger=LONG)

    asyncio.run(main())
    assert ep.closed


def test_ctrl_c_ends_it(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)
    pressed = threading.Timer(0.3, _thread.interrupt_main)
    with (
        pytest.raises(KeyboardInterrupt),
        running(pressed),
        pytest.warns(ResourceWarning, match="had not left"),
    ):
        ep.fabric.close(linger=LONG)
    assert ep.fabric.closed


def test_a_cancelled_aclose_closes(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)

    async def main() -> None:
        with pytest.raises(TimeoutError), pytest.warns(ResourceWarning, match="had not left"):
            async with asyncio.timeout(0.2):
                await ep.aclose(linger=LONG)

    asyncio.run(main())
    assert ep.closed


def test_many_endpoints_linger_side_by_side(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    senders = [ep, *(open_endpoint(ep.domain) for _ in range(11))]
    for sender in senders:
        stuck_send(sender, other)
    began = time.monotonic()
    with pytest.raises(ofipy.NotSent) as caught:
        ep.fabric.close(linger=2)
    assert caught.value.count == len(senders)
    assert time.monotonic() - began < 12  # one after the other they take 24


# ---------------------------------------------------------------------------------------------------- deferred work


def post_deferred(ep: ofipy.Endpoint, peer: ofipy.Peer, tag: int, length: int = 1 << 20) -> ofipy.Counter:
    """Post a send that starts when the counter reaches 1."""
    counter = ep.domain.counter()
    region = ep.register(np.full(length, 7, np.uint8))
    operations = ep.domain.operations(1)
    operations["op"], operations["peer"], operations["tag"] = ofipy.Op.TSEND, int(peer), tag
    operations["region"], operations["offset"], operations["length"] = region._id, region._offset, length
    ep.post(operations, after=(counter, 1))
    return counter


def test_work_below_its_threshold_is_not_waited_for(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    counter = post_deferred(ep, ep.insert(other.address), tag=1)
    ep.close(linger=LONG)
    assert counter.value == 0


@pytest.mark.needs("trigger")
def test_work_that_has_started_leaves(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(progress="manual"), open_endpoint()
    room = np.zeros(1 << 20, np.uint8)
    receive = other.trecv_into(room, tag=1)
    post_deferred(ep, ep.insert(other.address), tag=1).add(1)
    ep.close(linger=LONG)
    assert receive.wait(timeout=TIMEOUT).length == room.nbytes
    assert np.all(room == 7)


@pytest.mark.needs("trigger")
def test_work_that_waits_for_room_leaves(open_endpoint: OpenEndpoint) -> None:
    """Its counter has reached the threshold, and the transmit queue is full."""
    ep, other = open_endpoint(tx_size=1), open_endpoint()
    peer = stuck_send(ep, other)
    post_deferred(ep, peer, tag=3).add(1)
    closing = threading.Thread(target=ep.close, kwargs={"linger": LONG})
    closing.start()
    assert other.trecv_into(np.zeros(STUCK, np.uint8), tag=2).wait(timeout=TIMEOUT).length == STUCK
    room = np.zeros(1 << 20, np.uint8)
    other.trecv_into(room, tag=3).wait(timeout=TIMEOUT)
    closing.join(TIMEOUT)
    assert not closing.is_alive()
    assert np.all(room == 7)


@pytest.mark.needs("trigger")
def test_work_that_found_no_room_is_told(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(tx_size=1), open_endpoint()
    post_deferred(ep, stuck_send(ep, other), tag=3).add(1)
    with pytest.raises(ofipy.NotSent) as caught:
        ep.close(linger=0.3)
    assert caught.value.count == 2


# ------------------------------------------------------------------------------------------- what is not waited for


def test_receives_and_reads_are_not_waited_for(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    ep.trecv_into(bytearray(8), tag=1)
    ep.trecv(tag=2)
    ep.close(linger=LONG)


def test_a_peer_that_was_never_there_is_not_waited_for(open_endpoint: OpenEndpoint, target: Target) -> None:
    if target.in_process or target.provider.startswith("ofi:"):
        pytest.skip("the transport does not tell that nobody is there")
    ep, other = open_endpoint(), open_endpoint()
    address = other.address
    other.fabric.close(linger=0)
    ep.tsend(b"nobody", ep.insert(address), tag=1)
    with pytest.raises(ofipy.NotSent) as caught:
        ep.close(linger=LONG)
    assert caught.value.count == 1


def test_wrong_times_are_refused(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    for wrong in (-1, float("nan"), "1"):
        with pytest.raises(ofipy.InvalidArgument):
            ep.close(linger=wrong)  # type: ignore[arg-type]
    assert not ep.closed


def test_posts_are_refused_while_it_lingers(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    stuck_send(ep, other)
    refused = threading.Event()

    def post_on() -> None:
        while not refused.wait(0.001):
            try:
                ep.trecv_into(bytearray(1), tag=3)
            except (ofipy.Canceled, ofipy.Closed):
                refused.set()

    thread = threading.Thread(target=post_on)
    thread.start()
    closing = threading.Thread(target=lambda: ep.close(linger=LONG))
    closing.start()
    assert refused.wait(TIMEOUT)
    assert closing.is_alive()
    other.trecv_into(bytearray(STUCK), tag=2).wait(timeout=TIMEOUT)
    closing.join(TIMEOUT)
    thread.join(TIMEOUT)
    assert ep.closed
