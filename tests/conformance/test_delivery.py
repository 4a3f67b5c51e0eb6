# SPDX-License-Identifier: BSD-3-Clause
"""What ``complete="delivery"`` means: the payload is in the target's memory, received or kept by its core."""

from collections.abc import Callable

import numpy as np
import pytest
from remote import TIMEOUT
from sides import Side, Sides

import ofipy

OpenEndpoint = Callable[..., ofipy.Endpoint]
SIZES = [0, 8, 90, 5000, 300_000, 9 << 20]
LONG = 200_000

pytestmark = pytest.mark.pairs


def pattern(size: int) -> np.ndarray:
    return np.arange(size, dtype=np.uint32).astype(np.uint8)


@pytest.mark.connected
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
def test_no_receive_need_be_there(sides: Sides, size: int, tagged: bool) -> None:
    sides.run(deliver, receive_later, size, tagged, progress="auto")


def deliver(side: Side, size: int, tagged: bool) -> None:
    source = pattern(size)
    side.ep.tsend(b"", side.peer, tag=1).wait(timeout=TIMEOUT)
    if tagged:
        sent = side.ep.tsend(source, side.peer, tag=7, remote_data=5, complete="delivery")
    else:
        sent = side.ep.send(source, side.peer, remote_data=5, complete="delivery")
    sent.wait(timeout=TIMEOUT)
    # It is the sender's no longer.
    source[:] = 0
    side.sync()
    side.sync()


def receive_later(side: Side, size: int, tagged: bool) -> None:
    side.ep.trecv_into(bytearray(1), tag=1).wait(timeout=TIMEOUT)
    side.sync()
    room = np.zeros(size, np.uint8)
    receive = side.ep.trecv_into(room, tag=7) if tagged else side.ep.recv_into(room)
    assert receive.wait(timeout=TIMEOUT).length == size
    assert receive.remote_data == 5
    assert np.array_equal(room, pattern(size))
    side.sync()


@pytest.mark.needs("core_matching")
def test_what_was_delivered_outlives_its_sender(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    me = other.insert(ep.address)
    for size in SIZES:
        other.tsend(pattern(size), me, tag=size, complete="delivery").wait(timeout=TIMEOUT)
    other.fabric.close()
    for size in reversed(SIZES):
        room = np.zeros(size, np.uint8)
        assert ep.trecv_into(room, tag=size).wait(timeout=TIMEOUT).length == size
        assert np.array_equal(room, pattern(size))
    assert ep.stats().unexpected_messages == 0


def test_a_target_that_makes_no_progress_delivers_nothing(open_endpoint: OpenEndpoint) -> None:
    ep, target = open_endpoint(), open_endpoint(progress="manual")
    meeting = ep.tsend(b"", ep.insert(target.address), tag=1)
    target.trecv_into(bytearray(1), tag=1).wait(timeout=TIMEOUT)
    meeting.wait(timeout=TIMEOUT)
    for size in (8, LONG):
        room = bytearray(size)
        receive = target.trecv_into(room, tag=2)
        sent = ep.tsend(pattern(size), ep.insert(target.address), tag=2, complete="delivery")
        with pytest.raises(ofipy.TimedOut):
            sent.wait(timeout=0.2)
        receive.wait(timeout=TIMEOUT)
        while not sent.done:
            target.domain.progress()
        sent.wait(timeout=TIMEOUT)


@pytest.mark.needs("core_matching")
def test_above_its_bound_it_waits_for_a_receive(open_endpoint: OpenEndpoint) -> None:
    ep, target = open_endpoint(), open_endpoint(unexpected_size=5 * LONG)
    peer = ep.insert(target.address)
    sends = [ep.tsend(pattern(LONG), peer, tag=tag, complete="delivery") for tag in range(10)]
    for tag in range(4):
        sends[tag].wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.TimedOut):
        sends[-1].wait(timeout=0.2)
    assert target.stats().unexpected_bytes <= 5 * LONG
    # Out of order: nothing is in the way of what a receive takes.
    for tag in reversed(range(10)):
        room = np.zeros(LONG, np.uint8)
        assert target.trecv_into(room, tag=tag).wait(timeout=TIMEOUT).length == LONG
        assert np.array_equal(room, pattern(LONG))
        sends[tag].wait(timeout=TIMEOUT)


@pytest.mark.needs("core_matching")
@pytest.mark.parametrize("claims", [True, False])
def test_receives_of_unknown_size_and_drops(open_endpoint: OpenEndpoint, claims: bool) -> None:
    """While it is being fetched a message can be found, claimed and dropped like any other."""
    ep, target = open_endpoint(), open_endpoint()
    for size in (90, 9 << 20):
        sent = ep.tsend(pattern(size), ep.insert(target.address), tag=3, complete="delivery")
        while target.probe(tag=3, discard=not claims) is None:
            pass
        if claims:
            assert np.array_equal(
                np.frombuffer(target.trecv(tag=3).wait(timeout=TIMEOUT).data, np.uint8), pattern(size)
            )
        sent.wait(timeout=TIMEOUT)
    assert target.stats().unexpected_messages == 0
