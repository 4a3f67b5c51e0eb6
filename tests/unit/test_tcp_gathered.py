# SPDX-License-Identifier: BSD-3-Clause
"""What tcp holds back until somebody looks at the network, and how it ends when nobody does.

For how long it is held back ``tests/native/test_tcp_held.c`` judges, by a clock of its own.
"""

from collections.abc import Iterator

import pytest

import ofipy

TIMEOUT = 20
SIZES = (0, 8, 3000, 70_000)


def open_on_loopback(progress: str = "auto") -> ofipy.Endpoint:
    info = next(info for info in ofipy.getinfo(provider="tcp", ep_type="rdm") if info.domain == "lo")
    return ofipy.Fabric(info).domain(progress=progress).endpoint().enable()


@pytest.fixture
def target() -> Iterator[ofipy.Endpoint]:
    with open_on_loopback() as endpoint:
        yield endpoint
    endpoint.fabric.close()


@pytest.fixture
def ep() -> Iterator[ofipy.Endpoint]:
    """Nobody but the test looks."""
    with open_on_loopback("manual") as endpoint:
        yield endpoint
    endpoint.fabric.close()


@pytest.fixture
def peer(ep: ofipy.Endpoint, target: ofipy.Endpoint) -> ofipy.Peer:
    """Connected."""
    peer = ep.insert(target.address)
    receive = target.trecv_into(bytearray(5), tag=0)
    send = ep.tsend(b"hello", peer, tag=0)
    while not (send.done and receive.done):
        ep.domain.progress()
    return peer


@pytest.mark.parametrize("size", [0, 8, 3000])
def test_the_first_since_a_look_leaves_at_once_and_all_with_the_next(
    ep: ofipy.Endpoint, peer: ofipy.Peer, target: ofipy.Endpoint, size: int
) -> None:
    for _ in range(3):
        ep.domain.progress()
        first, *others = [ep.tsend(bytes(size), peer, tag=1) for _ in range(4)]
        assert first.done
        ep.domain.progress()
        assert all(send.done for send in others)
    for _ in range(12):
        assert target.trecv(tag=1).wait(timeout=TIMEOUT).length == size


def test_injected_messages_leave_at_once(
    ep: ofipy.Endpoint, peer: ofipy.Peer, target: ofipy.Endpoint
) -> None:
    ep.domain.progress()
    sends = [ep.tsend(b"1", peer, tag=1), ep.tsend(b"2", peer, tag=1)]
    ep.tsend(b"3", peer, tag=1, flags="inject")
    assert all(send.done for send in sends)
    assert [target.trecv(tag=1).wait(timeout=TIMEOUT).data for _ in range(3)] == [b"1", b"2", b"3"]


def test_many_bytes_do_not_wait(ep: ofipy.Endpoint, peer: ofipy.Peer, target: ofipy.Endpoint) -> None:
    ep.domain.progress()
    sends = [ep.tsend(bytes(60_000), peer, tag=1) for _ in range(60)]
    assert any(send.done for send in sends[1:])
    for _ in sends:
        receive = target.trecv_into(bytearray(60_000), tag=1)
        while not receive.done:
            ep.domain.progress()
    ofipy.wait_all(sends, timeout=TIMEOUT)


@pytest.mark.parametrize("size", SIZES)
def test_closing_sends_off_what_was_held_back(
    ep: ofipy.Endpoint, peer: ofipy.Peer, target: ofipy.Endpoint, size: int
) -> None:
    ep.domain.progress()
    sends = [ep.tsend(bytes([number]) * size, peer, tag=1) for number in range(9)]
    ep.close()
    for number, send in enumerate(sends):
        assert target.trecv(tag=1).wait(timeout=TIMEOUT).data == bytes([number]) * size
        assert send.done


@pytest.mark.parametrize("size", SIZES)
def test_removing_the_peer_sends_off_what_was_held_back(
    ep: ofipy.Endpoint, peer: ofipy.Peer, target: ofipy.Endpoint, size: int
) -> None:
    ep.domain.progress()
    sends = [ep.tsend(bytes([number]) * size, peer, tag=1) for number in range(9)]
    ep.av.remove(peer)
    for number, send in enumerate(sends):
        assert target.trecv(tag=1).wait(timeout=TIMEOUT).data == bytes([number]) * size
        send.wait(timeout=TIMEOUT)


def test_what_was_held_back_ends_with_its_peer(
    ep: ofipy.Endpoint, peer: ofipy.Peer, target: ofipy.Endpoint
) -> None:
    """Those that the kernel took have had their end; none of the others waits for ever."""
    ep.domain.progress()
    sends = [ep.tsend(bytes(70_000), peer, tag=1) for _ in range(4)]
    target.close()
    while not all(send.done for send in sends):
        ep.domain.progress()
