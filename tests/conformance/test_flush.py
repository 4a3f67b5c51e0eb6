# SPDX-License-Identifier: BSD-3-Clause
"""Flushing: what was written before is in the memory of the peers, which nobody else tells."""

import asyncio
import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from remote import BOTH, TIMEOUT, forge, hear, tell
from sides import Side, Sides

import ofipy

pytestmark = [pytest.mark.needs("rma"), pytest.mark.pairs]

Open = Callable[..., ofipy.Endpoint]

WORDS = 300


def lend(ep: ofipy.Endpoint, words: int = WORDS) -> tuple[np.ndarray, ofipy.RemoteRegion]:
    memory = np.zeros(words, np.uint64)
    return memory, ep.register(memory, access=BOTH).remote


def write_words(ep: ofipy.Endpoint, peer: ofipy.Peer, remote: ofipy.RemoteRegion, **options: str) -> None:
    """One write a word, whose requests nobody looks at."""
    for number in range(len(remote) // 8):
        ep.write(np.uint64(number + 1), peer, remote[8 * number : 8 * number + 8], **options)


def is_filled(memory: np.ndarray) -> bool:
    return np.array_equal(memory, np.arange(1, len(memory) + 1, dtype=np.uint64))


@pytest.mark.parametrize("flags", ["inject", "more"])
def test_short_writes(open_endpoint: Open, flags: str) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    for _ in range(3):
        memory[:] = 0
        write_words(ep, peer, remote, flags=flags)
        flushed = ep.flush(peer)
        assert flushed.wait(timeout=TIMEOUT) is flushed
        assert is_filled(memory)
    assert ep.stats().flushes == 3


def test_long_and_short_ones_together(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other, 1 << 19)
    source = np.arange(1, len(memory) + 1, dtype=np.uint64)
    half = 8 * len(memory) // 2
    ep.write(source[half // 8 :], peer, remote[half:])
    ep.write(source[: half // 8 - 1], peer, remote[: half - 8])
    ep.write(source[half // 8 - 1], peer, remote[half - 8 : half])
    ep.flush(peer).wait(timeout=TIMEOUT)
    assert np.array_equal(memory, source)


def test_all_peers(open_endpoint: Open) -> None:
    ep = open_endpoint()
    others = [open_endpoint() for _ in range(3)]
    lent = [lend(other) for other in others]
    for other, (_, remote) in zip(others, lent, strict=True):
        write_words(ep, ep.insert(other.address), remote)
    ep.flush().wait(timeout=TIMEOUT)
    for memory, _ in lent:
        assert is_filled(memory)


def test_one_that_has_nothing_to_wait_for(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    for flush in (ep.flush(), ep.flush(peer)):
        flush.wait(timeout=TIMEOUT)
    # It connects to nobody.
    assert ep.stats().peers_up == 0
    assert ep.stats().flushes == 2


def test_several_at_once_end_in_their_order(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    flushes = []
    for number in range(WORDS):
        ep.write(np.uint64(number + 1), peer, remote[8 * number : 8 * number + 8])
        flushes.append(ep.flush(peer if number % 2 else None))
    flushes[-1].wait(timeout=TIMEOUT)
    assert is_filled(memory)
    assert all(flush.done for flush in flushes)


def test_messages_are_not_waited_for_and_nothing_waits_for_it(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    # Larger than what is kept: it is at its sender until somebody receives it.
    waiting = ep.tsend(np.zeros(1 << 21, np.uint8), peer, tag=7)
    write_words(ep, peer, remote)
    flush = ep.flush(peer)
    ep.tsend(b"later", peer, tag=8)
    got = other.trecv_into(bytearray(5), tag=8)
    other.trecv_into(bytearray(1 << 21), tag=7).wait(timeout=TIMEOUT)
    got.wait(timeout=TIMEOUT)
    flush.wait(timeout=TIMEOUT)
    waiting.wait(timeout=TIMEOUT)
    assert is_filled(memory)


@pytest.mark.needs("lone_refusals")
def test_a_write_that_fails_says_so_itself(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    write_words(ep, peer, remote)
    wrong = ep.write(bytearray(8), peer, forge(remote[:8], key=remote.key ^ 1))
    ep.flush(peer).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.RemoteAccessError):
        wrong.wait(timeout=TIMEOUT)
    assert is_filled(memory)


@pytest.mark.needs("atomic")
def test_atomics(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other, 2)
    for _ in range(WORDS):
        ep.atomic(np.ones(2, np.uint64), peer, remote, op="sum")
    ep.flush(peer).wait(timeout=TIMEOUT)
    assert list(memory) == [WORDS, WORDS]


def test_cancelled_and_dropped(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    for _ in range(20):
        write_words(ep, peer, remote)
        flush = ep.flush(peer)
        if flush.cancel():
            with pytest.raises(ofipy.Canceled):
                flush.wait(timeout=TIMEOUT)
        ep.flush(peer)
    ep.flush().wait(timeout=TIMEOUT)
    assert is_filled(memory)


def test_awaited(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)

    async def write() -> None:
        write_words(ep, peer, remote)
        await asyncio.wait_for(ep.flush(peer), TIMEOUT)
        await asyncio.wait_for(ep.flush(), TIMEOUT)

    asyncio.run(write())
    assert is_filled(memory)


def test_counters_count_the_program_s_operations_only(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    write_words(ep, peer, remote)
    for _ in range(3):
        ep.flush(peer).wait(timeout=TIMEOUT)
    assert ep.stats().writes == WORDS
    assert is_filled(memory)


def test_a_peer_of_somebody_else(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    with pytest.raises(ofipy.InvalidArgument):
        other.flush(peer)
    ep.av.remove(peer)
    with pytest.raises(ofipy.UnknownPeer):
        ep.flush(peer)
    other.close()
    with pytest.raises(ofipy.Closed):
        other.flush()


@pytest.mark.needs("directed_recv")
def test_a_peer_that_was_lost_before(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint()
    peer = ep.insert(other.address)
    memory, remote = lend(other)
    write_words(ep, peer, remote)
    ep.flush(peer).wait(timeout=TIMEOUT)
    assert is_filled(memory)
    other.fabric.close()
    with pytest.raises(ofipy.PeerLost):
        ep.trecv_into(bytearray(1), peer, tag=99).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.PeerLost) as caught:
        ep.flush(peer).wait(timeout=TIMEOUT)
    assert caught.value.peer == str(peer.address)
    # Nothing of ours is under way to it any more.
    ep.flush().wait(timeout=TIMEOUT)


def error_of(request: ofipy.Request) -> ofipy.FabricError | None:
    try:
        request.wait(timeout=TIMEOUT)
    except ofipy.FabricError as error:
        return error
    return None


def test_a_peer_that_is_lost_meanwhile(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint(progress="manual")
    peer = ep.insert(other.address)
    _, remote = lend(other, 1 << 19)
    there = ep.tsend(b"", peer, tag=1, complete="delivery")
    while not there.done:
        other.domain.progress()
    writes = [ep.write(np.zeros(1 << 22, np.uint8), peer, remote) for _ in range(4)]
    flushes = [ep.flush(peer), ep.flush()]
    other.fabric.close()
    lost = [error for error in map(error_of, writes) if error is not None]
    for error in map(error_of, flushes):
        # As its writes say: they were in the memory before it went, or they were not.
        assert type(error) is (type(lost[-1]) if lost else type(None))
        assert error is None or error.peer == str(peer.address)


def test_closing_ends_it(open_endpoint: Open) -> None:
    ep, other = open_endpoint(), open_endpoint(progress="manual")
    peer = ep.insert(other.address)
    # Few, so that none waits for space: the other side makes no progress, and may not even connect.
    _, remote = lend(other, 8)
    write_words(ep, peer, remote)
    flush = ep.flush(peer)
    ep.close(linger=0)
    with contextlib.suppress(ofipy.Canceled):
        flush.wait(timeout=TIMEOUT)
    assert flush.done


def write_then_flush(side: Side) -> None:
    remote = hear(side)
    for flags in ("inject", "more"):
        write_words(side.ep, side.peer, remote, flags=flags)
        side.ep.flush().wait(timeout=TIMEOUT)
        side.send(b"look", tag=2).wait(timeout=TIMEOUT)
        side.receive(bytearray(4), tag=2).wait(timeout=TIMEOUT)


def look(side: Side) -> None:
    memory = np.zeros(WORDS, np.uint64)
    with side.ep.register(memory, access=BOTH) as region:
        tell(side, region)
        for _ in range(2):
            # Nothing is sent meanwhile: a libfabric that keeps a message without a receive reads no answer behind it.
            side.receive(bytearray(4), tag=2).wait(timeout=TIMEOUT)
            assert is_filled(memory)
            memory[:] = 0
            side.send(b"seen", tag=2).wait(timeout=TIMEOUT)


@pytest.mark.connected
@pytest.mark.untagged
def test_between_two_processes(sides: Sides) -> None:
    sides.run(write_then_flush, look, progress="auto")
