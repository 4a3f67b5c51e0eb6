# SPDX-License-Identifier: BSD-3-Clause
"""A transport may hold back a burst until somebody looks at the network: all of it leaves, whoever looks or not."""

from collections.abc import Callable

import pytest

import ofipy

TIMEOUT = 20
BURST = 24
# A transport with credits sends this many before it has to look for more of them.
CREDITS = 3

Open = Callable[..., ofipy.Endpoint]


def meet(ep: ofipy.Endpoint, target: ofipy.Endpoint) -> ofipy.Peer:
    """Connect, and look once: the next post finds a network that somebody looks at."""
    peer = ep.insert(target.address)
    receive = target.trecv_into(bytearray(5), tag=0)
    ep.tsend(b"hello", peer, tag=0).wait(timeout=TIMEOUT)
    while not receive.done:
        ep.domain.progress()
        target.domain.progress()
    receive.wait(timeout=TIMEOUT)
    ep.domain.progress()
    return peer


def content(size: int, number: int) -> bytes:
    return bytes([number]) * size


def post(ep: ofipy.Endpoint, peer: ofipy.Peer, size: int) -> list[ofipy.Request]:
    return [ep.tsend(content(size, number), peer, tag=1) for number in range(BURST)]


def take(target: ofipy.Endpoint, size: int, count: int = BURST) -> None:
    """All of it, in order; nobody calls the sender."""
    for number in range(count):
        assert target.trecv(tag=1).wait(timeout=TIMEOUT).data == content(size, number)


@pytest.mark.parametrize("size", [0, 8, 3000, 70_000])
def test_a_burst_leaves_though_its_sender_calls_no_more(open_endpoint: Open, size: int) -> None:
    ep, target = open_endpoint(), open_endpoint()
    sends = post(ep, meet(ep, target), size)
    take(target, size)
    ofipy.wait_all(sends, timeout=TIMEOUT)


@pytest.mark.parametrize("size", [0, 8, 3000])
def test_what_nobody_waits_for_leaves_at_once(open_endpoint: Open, size: int) -> None:
    ep, target = open_endpoint(progress="manual"), open_endpoint()
    peer = meet(ep, target)
    for number in range(CREDITS):
        ep.tsend(content(size, number), peer, tag=1)
    take(target, size, CREDITS)


@pytest.mark.parametrize("size", [0, 8, 3000])
def test_a_wait_sends_all_off(open_endpoint: Open, size: int) -> None:
    ep, target = open_endpoint(progress="manual"), open_endpoint()
    peer = meet(ep, target)
    *_, last = post(ep, peer, size)
    last.wait(timeout=TIMEOUT)
    take(target, size)


def test_all_ways_to_post_keep_one_order(open_endpoint: Open) -> None:
    """Kept requests, dropped ones, injected messages, and waits between them."""
    ep, target = open_endpoint(), open_endpoint()
    peer = meet(ep, target)
    kept = []
    for number in range(BURST):
        send = ep.tsend(
            content(number * 100, number), peer, tag=1, flags="inject" if number % 5 == 1 else None
        )
        if number % 7 == 3:
            send.wait(timeout=TIMEOUT)
        if number % 2:
            kept.append(send)
    for number in range(BURST):
        assert target.trecv(tag=1).wait(timeout=TIMEOUT).data == content(number * 100, number)
    ofipy.wait_all(kept, timeout=TIMEOUT)
