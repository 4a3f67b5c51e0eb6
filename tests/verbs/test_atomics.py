# SPDX-License-Identifier: BSD-3-Clause
"""Atomics that the device carries out, over connected endpoints and RDM ones: see docs/explanation/verbs.md."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ofipy

sys.path.insert(0, str(Path(__file__).parent))
from connected_pair import TIMEOUT, connected

Pair = tuple[ofipy.Endpoint, ofipy.Endpoint]


@pytest.fixture
def pair() -> Iterator[Pair]:
    yield from connected()


def test_atomics_of_the_device(pair: Pair) -> None:
    client, server = pair
    words = np.zeros(4, np.uint64)
    region = server.register(words, access="device_atomic|remote_read")
    remote = region.remote
    assert remote.access == ofipy.Access.DEVICE_ATOMIC | ofipy.Access.REMOTE_READ
    remote = ofipy.RemoteRegion.from_bytes(bytes(remote))
    one = np.uint64(1)
    before = [
        client.fetch_atomic(one, client.peer, remote[8:16], op="sum").wait(timeout=TIMEOUT) for _ in range(5)
    ]
    assert before == [0, 1, 2, 3, 4]
    client.atomic(np.int64(-2), client.peer, remote[8:16], op="sum").wait(timeout=TIMEOUT)
    swap = client.compare_atomic(np.uint64(77), np.uint64(3), client.peer, remote[8:16])
    assert swap.wait(timeout=TIMEOUT) == 3
    swap = client.compare_atomic(np.uint64(99), np.uint64(3), client.peer, remote[8:16])
    assert swap.wait(timeout=TIMEOUT) == 77
    back = np.zeros(4, np.uint64)
    client.read(back, client.peer, remote).wait(timeout=TIMEOUT)
    assert back.tolist() == words.tolist() == [0, 77, 0, 0]
    # Many at once, whose results land where they belong.
    into = np.zeros(50, np.uint64)
    adds = [
        client.fetch_atomic(one, client.peer, remote[:8], op="sum", into=into[place : place + 1].reshape(()))
        for place in range(50)
    ]
    ofipy.wait_all(adds, timeout=TIMEOUT)
    assert into.tolist() == list(range(50))
    assert client.stats().atomics == 5 + 1 + 2 + 50


def test_atomics_in_allocated_memory(pair: Pair) -> None:
    client, server = pair
    words = server.empty(2, np.uint64, access="device_atomic")
    remote = server.domain.region(words).remote
    client.fetch_atomic(np.uint64(5), client.peer, remote[8:], op="sum").wait(timeout=TIMEOUT)
    assert words.tolist() == [0, 5]


def test_atomics_of_both_sides_are_one_step(pair: Pair) -> None:
    client, server = pair
    word = np.zeros(1, np.uint64)
    remote = server.register(word, access="device_atomic").remote
    for _ in range(40):
        requests = [client.atomic(np.uint64(1), client.peer, remote, op="sum") for _ in range(5)]
        requests.append(server.send(b"x"))
        client.recv_into(bytearray(1)).wait(timeout=TIMEOUT)
        ofipy.wait_all(requests, timeout=TIMEOUT)
    assert client.fetch_atomic(np.uint64(0), client.peer, remote, op="sum").wait(timeout=TIMEOUT) == 200


@pytest.mark.parametrize(
    ("kind", "op", "dtype", "there"),
    [
        ("base", "sum", np.uint64, 1),
        ("fetch", "sum", np.int64, 1),
        ("compare", "cswap", np.uint64, 1),
        ("fetch", "sum", np.float64, 0),
        ("fetch", "sum", np.uint32, 0),
        ("fetch", "min", np.uint64, 0),
        ("compare", "cswap_lt", np.uint64, 0),
        ("base", "write", np.uint64, 0),
    ],
)
def test_what_the_device_lacks_is_refused(pair: Pair, kind: str, op: str, dtype: type, there: int) -> None:
    client, server = pair
    assert client.domain.atomic_valid(op, dtype, kind=kind, device=True) == there
    assert client.domain.atomic_valid(op, dtype, kind=kind) == 0
    if there:
        return
    remote = server.register(np.zeros(1, dtype), access="device_atomic").remote
    call = {"base": client.atomic, "fetch": client.fetch_atomic, "compare": client.compare_atomic}[kind]
    operands = [dtype(1)] * (2 if kind == "compare" else 1)
    with pytest.raises(ofipy.NotSupported, match="not among the operations of the device"):
        call(*operands, client.peer, remote, op=op)


def test_the_two_kinds_of_atomics_are_not_mixed(pair: Pair) -> None:
    client, server = pair
    words = np.zeros(3, np.uint64)
    plain = server.register(words, access="remote_read|remote_write").remote
    device = server.register(words[2:], access="device_atomic").remote
    one = np.uint64(1)
    with pytest.raises(ofipy.NotSupported, match=r"only the device carries out atomics here.*device_atomic"):
        client.fetch_atomic(one, client.peer, plain[:8], op="sum")
    with pytest.raises(ofipy.RemoteAccessError, match="needs DEVICE_ATOMIC"):
        client.fetch_atomic(one, client.peer, plain[:8], op="sum", flags="device_atomic")
    with pytest.raises(ofipy.RemoteAccessError, match="needs DEVICE_ATOMIC"):
        client.atomic(np.ones(2, np.uint64), client.peer, [device, plain[:8]], op="sum")
    with pytest.raises(ofipy.RemoteAccessError, match="needs REMOTE_WRITE"):
        client.write(one.tobytes(), client.peer, device)


def test_atomics_of_the_device_are_of_one_aligned_word(pair: Pair) -> None:
    client, server = pair
    remote = server.register(np.zeros(3, np.uint64), access="device_atomic").remote
    with pytest.raises(
        ofipy.InvalidArgument, match="one element, at an address that is a multiple of its size"
    ):
        client.fetch_atomic(np.uint64(1), client.peer, remote[4:12], op="sum")
    with pytest.raises(ofipy.FabricError, match="more than 8 bytes"):
        client.fetch_atomic(np.ones(2, np.uint64), client.peer, remote[:16], op="sum")
    assert client.domain.info.caps & ofipy.Cap.DEVICE_ATOMIC
    assert ofipy.getinfo(provider="verbs", caps={"device_atomic"})


def test_atomics_that_the_region_refuses_end_the_connection(pair: Pair) -> None:
    client, server = pair
    plain = server.register(np.zeros(1, np.uint64), access="remote_read|remote_write").remote
    lie = ofipy.RemoteRegion(plain.key, plain.offset, 8, ofipy.Access.DEVICE_ATOMIC)
    with pytest.raises(ofipy.RemoteAccessError, match="remote access error"):
        client.fetch_atomic(np.uint64(1), client.peer, lie, op="sum").wait(timeout=TIMEOUT)


# --------------------------------------------------------------------------------------------------------- over RDM


@pytest.fixture
def far() -> Iterator[tuple[ofipy.Endpoint, ofipy.Endpoint, ofipy.Peer]]:
    """One that has an owner of memory as its peer."""
    with (
        ofipy.open(provider="verbs", progress="auto") as actor,
        ofipy.open(provider="verbs", progress="manual") as owner,
    ):
        yield actor, owner, actor.insert(owner.address)


def test_an_owner_that_sleeps(far: tuple[ofipy.Endpoint, ofipy.Endpoint, ofipy.Peer]) -> None:
    actor, owner, peer = far
    words = np.zeros(2, np.uint64)
    remote = ofipy.RemoteRegion.from_bytes(bytes(owner.register(words, access="device_atomic").remote))
    hello = actor.tsend(b"here", peer, tag=1)
    owner.trecv_into(bytearray(4), tag=1).wait(timeout=TIMEOUT)
    hello.wait(timeout=TIMEOUT)
    # From here on the owner makes no progress.
    for number in range(10):
        assert (
            actor.fetch_atomic(np.uint64(3), peer, remote[8:], op="sum").wait(timeout=TIMEOUT) == 3 * number
        )
    assert actor.compare_atomic(np.uint64(5), np.uint64(30), peer, remote[8:]).wait(timeout=TIMEOUT) == 30
    assert words.tolist() == [0, 5]


def test_an_rdm_region_that_refuses_loses_the_path_and_no_more(
    far: tuple[ofipy.Endpoint, ofipy.Endpoint, ofipy.Peer],
) -> None:
    actor, owner, peer = far
    receive = owner.trecv_into(bytearray(4), tag=1)
    hello = actor.tsend(b"here", peer, tag=1)
    receive.wait(timeout=TIMEOUT)
    hello.wait(timeout=TIMEOUT)
    plain = owner.register(np.zeros(1, np.uint64), access="remote_read|remote_write").remote
    lie = ofipy.RemoteRegion(plain.key, plain.offset, 8, ofipy.Access.DEVICE_ATOMIC, ways=plain.ways)
    with pytest.raises(ofipy.FabricError, match="remote access error"):
        actor.fetch_atomic(np.uint64(1), peer, lie, op="sum").wait(timeout=TIMEOUT)
    receive = owner.trecv_into(bytearray(5), tag=2)
    again = actor.tsend(b"again", peer, tag=2)
    assert receive.wait(timeout=TIMEOUT).length == 5
    again.wait(timeout=TIMEOUT)
