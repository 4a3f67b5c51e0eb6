# SPDX-License-Identifier: BSD-3-Clause
"""Operations that start after earlier ones to the same peer have finished (fi_msg(3), FI_FENCE)."""

from collections.abc import Callable

import pytest
from sides import Side, Sides

import ofipy

pytestmark = pytest.mark.needs("fence")

Open = Callable[..., ofipy.Endpoint]
TIMEOUT = 20
ROUNDS = 50


def settle(ep: ofipy.Endpoint) -> None:
    """Long enough for whatever is not held back to arrive."""
    for _ in range(50):
        ep.domain.progress()


def is_held(ep: ofipy.Endpoint, tag: int) -> bool:
    request = ep.trecv_into(bytearray(100), tag=tag)
    settle(ep)
    return request.cancel()


def receive(ep: ofipy.Endpoint, tag: int) -> None:
    ep.trecv_into(bytearray(100), tag=tag).wait(timeout=TIMEOUT)


def meet(ep: ofipy.Endpoint, peer: ofipy.Peer, other: ofipy.Endpoint) -> None:
    """Connect, so that nothing is held for want of a connection."""
    ep.tsend(b"", peer, tag=0).wait(timeout=TIMEOUT)
    receive(other, 0)


def test_it_and_what_follows_wait_for_what_was_before(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    meet(ep, me, ep)
    before = [ep.tsend(b"before", me, tag=tag, complete="match") for tag in (1, 2)]
    fenced = ep.tsend(b"fenced", me, tag=3, flags="fence", complete="match")
    behind = ep.tsend(b"behind", me, tag=4, complete="match")
    assert ep.stats().backlog == 2
    for tag in (3, 4):
        assert is_held(ep, tag)
    receive(ep, 2)
    for tag in (3, 4):
        assert is_held(ep, tag)
    receive(ep, 1)
    for request in before:
        request.wait(timeout=TIMEOUT)
    receive(ep, 4)
    receive(ep, 3)
    fenced.wait(timeout=TIMEOUT)
    behind.wait(timeout=TIMEOUT)
    assert ep.stats().backlog == 0


def test_without_anything_before_it_starts_at_once(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    for tag in range(3):
        ep.tsend(b"fenced", me, tag=tag, flags="fence").wait(timeout=TIMEOUT)
        receive(ep, tag)


def test_it_concerns_one_peer(open_endpoint: Open) -> None:
    ep = open_endpoint(progress="manual")
    other = open_endpoint(ep.domain, cq=ep.cq, av=ep.av)
    me, there = ep.insert(ep.address), ep.insert(other.address)
    meet(ep, me, ep)
    first = ep.tsend(b"first", me, tag=1, complete="match")
    ep.tsend(b"fenced", there, tag=2, flags="fence").wait(timeout=TIMEOUT)
    receive(other, 2)
    ep.tsend(b"fenced", me, tag=3, flags="fence")
    ep.tsend(b"other", there, tag=4).wait(timeout=TIMEOUT)
    receive(other, 4)
    assert is_held(ep, 3)
    receive(ep, 1)
    first.wait(timeout=TIMEOUT)
    receive(ep, 3)


def test_a_held_one_can_be_cancelled(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    meet(ep, me, ep)
    first = ep.tsend(b"first", me, tag=1, complete="match")
    fenced = ep.tsend(b"fenced", me, tag=2, flags="fence")
    behind = ep.tsend(b"behind", me, tag=3)
    assert fenced.cancel()
    with pytest.raises(ofipy.Canceled):
        fenced.wait(timeout=TIMEOUT)
    # Without the fence nothing holds what was behind it.
    receive(ep, 3)
    behind.wait(timeout=TIMEOUT)
    assert not first.test()
    receive(ep, 1)
    first.wait(timeout=TIMEOUT)


def test_closing_ends_what_is_held(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    meet(ep, me, ep)
    requests = [
        ep.tsend(b"first", me, tag=1, complete="match"),
        ep.tsend(b"fenced", me, tag=2, flags="fence"),
    ]
    ep.close(linger=0)
    for request in requests:
        with pytest.raises(ofipy.Canceled):
            request.wait(timeout=TIMEOUT)


def send_fenced(side: Side) -> None:
    side.sync()
    posted = []
    for number in range(ROUNDS):
        posted.append(side.ep.tsend(bytes(40_000), side.peer, tag=2 * number))
        posted.append(side.ep.tsend(b"fenced", side.peer, tag=2 * number + 1, flags="fence"))
    for request in posted:
        request.wait(timeout=TIMEOUT)
    side.sync()


def receive_fenced(side: Side) -> int:
    """Large messages stay with their sender until they are received, so nothing may come before."""
    side.sync()
    count = 0
    for number in range(ROUNDS):
        fenced = side.ep.trecv_into(bytearray(10), side.peer, tag=2 * number + 1)
        large = side.ep.trecv_into(bytearray(40_000), side.peer, tag=2 * number)
        fenced.wait(timeout=TIMEOUT)
        count += large.done
        large.wait(timeout=TIMEOUT)
    side.sync()
    return count


@pytest.mark.connected
def test_between_two_sides(sides: Sides) -> None:
    assert sides.run(send_fenced, receive_fenced)[1] == ROUNDS


def send_until_lost(side: Side) -> int:
    side.sync()
    posted = [side.ep.tsend(b"first", side.peer, tag=1, complete="match")]
    posted += [side.ep.tsend(b"fenced", side.peer, tag=2, flags="fence") for _ in range(3)]
    lost = 0
    for request in posted:
        # Refused is what was posted when the peer had left already.
        with pytest.raises((ofipy.PeerLost, ofipy.ConnectionRefused)):
            request.wait(timeout=TIMEOUT)
        lost += 1
    return lost


def leave_when_announced(side: Side) -> None:
    side.sync()
    if side.ep.info.offloads_matching:
        settle(side.ep)
    else:
        while side.ep.probe(tag=1) is None:
            pass
    side.ep.close()


def test_what_is_held_ends_with_the_peer(sides: Sides) -> None:
    assert sides.run(send_until_lost, leave_when_announced)[0] == 4
