# SPDX-License-Identifier: BSD-3-Clause
"""Receives that name a peer which is gone: they end at once, and wait again once somebody is there again."""

from collections.abc import Callable

import numpy as np
import pytest
from sides import Target

import ofipy

OpenEndpoint = Callable[..., ofipy.Endpoint]
TIMEOUT = 20
# Seconds in which a receive ends that has nothing to wait for.
SOON = 3

pytestmark = [pytest.mark.pairs, pytest.mark.needs("directed_recv")]


def meet(ep: ofipy.Endpoint, other: ofipy.Endpoint, *, by_text: bool = False) -> ofipy.Peer:
    """Have both send to the other; `ep` keeps the last message, tag 3, without a receive."""
    # Without the scheme: of a pair each side has its own.
    where = str(other.address).partition("://")[2] if by_text else other.address
    peer, me = ep.insert(where), other.insert(ep.address)
    ep.tsend(b"there", peer, tag=1).wait(timeout=TIMEOUT)
    other.trecv_into(bytearray(5), tag=1).wait(timeout=TIMEOUT)
    other.tsend(b"back", me, tag=2).wait(timeout=TIMEOUT)
    ep.trecv_into(bytearray(4), tag=2).wait(timeout=TIMEOUT)
    other.tsend(b"left behind", me, tag=3).wait(timeout=TIMEOUT)
    return peer


def await_loss(ep: ofipy.Endpoint, peer: ofipy.Peer) -> None:
    """Return when `ep` knows that its peer is gone."""
    with pytest.raises(ofipy.PeerLost):
        ep.trecv_into(bytearray(1), peer, tag=99).wait(timeout=TIMEOUT)


def lose(ep: ofipy.Endpoint, other: ofipy.Endpoint, *, by_text: bool = False) -> ofipy.Peer:
    """A peer that was met, and has closed."""
    peer = meet(ep, other, by_text=by_text)
    other.fabric.close()
    await_loss(ep, peer)
    return peer


def test_it_ends_at_once_after_what_had_come(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    peer = lose(ep, open_endpoint())
    room = bytearray(20)
    assert ep.trecv_into(room, peer, tag=3).wait(timeout=SOON).length == 11
    assert room[:11] == b"left behind"
    for _ in range(3):
        for receive in (
            ep.trecv_into(room, peer, tag=3),
            ep.trecv_into(room, peer, tag=0, ignore=2**64 - 1),
            ep.recv_into(room, peer),
        ):
            with pytest.raises(ofipy.PeerLost) as caught:
                receive.wait(timeout=SOON)
            assert caught.value.peer == str(peer.address)
    assert ep.stats().posted_receives == 0


@pytest.mark.needs("core_matching")
def test_of_unknown_size(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    peer = lose(ep, open_endpoint())
    assert bytes(ep.trecv(peer, tag=3).wait(timeout=SOON).data) == b"left behind"
    for receive in (ep.trecv(peer, tag=3), ep.recv(peer)):
        with pytest.raises(ofipy.PeerLost):
            receive.wait(timeout=SOON)


def test_prepared_and_raw(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    peer = lose(ep, open_endpoint())
    prepared = ep.prepare_trecv(bytearray(20), peer, tag=3)
    prepared.start()
    assert prepared.wait(timeout=SOON).length == 11
    for _ in range(2):
        prepared.start()
        with pytest.raises(ofipy.PeerLost):
            prepared.wait(timeout=SOON)
    region = ep.register(bytearray(20))
    ep.post_trecv(region, peer, tag=3, context=5)
    row = ep.cq.wait(min=1, timeout=SOON)[0]
    assert row["context"] == 5
    assert isinstance(ep.cq.exception(row), ofipy.PeerLost)


@pytest.mark.needs("multi_recv")
def test_a_buffer_for_many(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    peer = lose(ep, open_endpoint())
    messages = ep.trecv_many(bytearray(1000), peer, tag=3)
    message = messages.next(timeout=SOON)
    assert message is not None
    assert bytes(message) == b"left behind"
    with pytest.raises(ofipy.PeerLost):
        messages.next(timeout=SOON)
    assert messages.released


def test_those_that_name_nobody_or_somebody_else_wait(open_endpoint: OpenEndpoint) -> None:
    ep, other = open_endpoint(), open_endpoint()
    alive = meet(ep, other)
    peer = lose(ep, open_endpoint())
    with pytest.raises(ofipy.PeerLost):
        ep.trecv_into(bytearray(4), peer, tag=5).wait(timeout=SOON)
    named, anyone = ep.trecv_into(bytearray(4), alive, tag=5), ep.trecv_into(bytearray(4), tag=6)
    for tag in (5, 6):
        other.tsend(b"here", other.insert(ep.address), tag=tag).wait(timeout=TIMEOUT)
    assert named.wait(timeout=TIMEOUT).source == anyone.wait(timeout=TIMEOUT).source == alive


def test_a_refused_send_changes_nothing(open_endpoint: OpenEndpoint) -> None:
    ep = open_endpoint()
    peer = lose(ep, open_endpoint())
    for _ in range(2):
        # Nobody knows while it is tried: it waits for the outcome.
        send, receive = ep.tsend(b"anybody?", peer, tag=1), ep.trecv_into(bytearray(4), peer, tag=5)
        with pytest.raises(ofipy.FabricError):
            send.wait(timeout=TIMEOUT)
        with pytest.raises(ofipy.PeerLost):
            receive.wait(timeout=SOON)
    with pytest.raises(ofipy.PeerLost):
        ep.trecv_into(bytearray(4), peer, tag=5).wait(timeout=SOON)


def restart(open_endpoint: OpenEndpoint, target: Target) -> tuple[ofipy.Endpoint, ofipy.Peer, str]:
    """An endpoint, a peer of it that is gone, and the service under which that was known."""
    ep, service = open_endpoint(), target.free_service()
    # An address with an identity means that endpoint alone, and nobody who takes its place.
    return ep, lose(ep, open_endpoint(service=service), by_text=True), service


@pytest.mark.parametrize("begins", ["it", "we", "we, after inserting it again"])
def test_another_incarnation_at_its_address(open_endpoint: OpenEndpoint, target: Target, begins: str) -> None:
    ep, peer, service = restart(open_endpoint, target)
    # Of a pair it is the second side's turn again.
    open_endpoint()
    other = open_endpoint(service=service)
    me = other.insert(ep.address)
    into = bytearray(5)
    if begins == "it":
        other.tsend(b"again", me, tag=7).wait(timeout=TIMEOUT)
        ep.trecv_into(into, tag=7).wait(timeout=TIMEOUT)
    elif begins == "we":
        ep.tsend(b"again", peer, tag=7).wait(timeout=TIMEOUT)
        other.trecv_into(into, tag=7).wait(timeout=TIMEOUT)
    else:
        assert ep.insert(peer.address) == peer
    receive = ep.trecv_into(into, peer, tag=8)
    payload = np.arange(30_000, dtype=np.uint32)
    room = np.zeros_like(payload)
    longer = ep.trecv_into(room, peer, tag=9)
    other.tsend(b"hello", me, tag=8)
    other.tsend(payload, me, tag=9)
    assert receive.wait(timeout=TIMEOUT).source == longer.wait(timeout=TIMEOUT).source == peer
    assert into == b"hello"
    assert np.array_equal(room, payload)
    # And gone again.
    other.fabric.close()
    await_loss(ep, peer)
    with pytest.raises(ofipy.PeerLost):
        ep.trecv_into(into, peer, tag=8).wait(timeout=SOON)


@pytest.mark.needs("shared_context")
def test_a_shared_context(target: Target) -> None:
    with ofipy.Fabric(target.side(0).info()) as fabric, fabric.domain(progress="auto") as domain:
        context = domain.receive_context()
        endpoints = [domain.endpoint(rx=context).enable() for _ in range(2)]
        goes, stays = (target.side(1).open(progress="auto") for _ in range(2))
        gone, alive = context.av.insert(goes.address), context.av.insert(stays.address)
        for other in (goes, stays):
            other.tsend(b"left", other.insert(endpoints[0].address), tag=1).wait(timeout=TIMEOUT)
        while endpoints[0].stats().unexpected_messages != 2:
            domain.progress()
        goes.fabric.close()
        with pytest.raises(ofipy.PeerLost):
            context.trecv_into(bytearray(4), gone, tag=99).wait(timeout=TIMEOUT)
        for peer in (gone, alive):
            assert context.trecv_into(bytearray(4), peer, tag=1).wait(timeout=SOON).source == peer
        with pytest.raises(ofipy.PeerLost):
            context.trecv_into(bytearray(4), gone, tag=1).wait(timeout=SOON)
        receive = context.trecv_into(bytearray(4), alive, tag=1)
        stays.tsend(b"here", stays.insert(endpoints[1].address), tag=1).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).source == alive
        stays.fabric.close()
