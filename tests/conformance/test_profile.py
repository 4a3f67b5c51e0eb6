# SPDX-License-Identifier: BSD-3-Clause
"""The hook `profile` counts what the program did, no more and no less."""

from collections.abc import Callable

import numpy as np
import pytest

import ofipy

TIMEOUT = 30
SIZES = (0, 1, 8, 200, 6000, 100_000)

OpenEndpoint = Callable[..., ofipy.Endpoint]


@pytest.fixture(autouse=True)
def _hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_HOOKS", "debug;profile:table=no;trace")


def least(size: int) -> int:
    """Of the place of a histogram where a size is counted."""
    return 1 << size.bit_length() - 1 if size else 0


def row_of(ep: ofipy.Endpoint, operation: str) -> ofipy.ProfileRow:
    (row,) = (row for row in ep.profile() if row.operation == operation)
    return row


def test_messages(open_endpoint: OpenEndpoint) -> None:
    first, second = open_endpoint(), open_endpoint()
    peer = first.insert(second.address)
    second.insert(first.address)
    for tag, size in enumerate(SIZES):
        receive = second.trecv_into(bytearray(size), tag=tag)
        first.tsend(bytes(size), peer, tag=tag).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
    for ep, operation in ((first, "tsend"), (second, "trecv")):
        row = row_of(ep, operation)
        assert (row.operations, row.errors, row.bytes) == (len(SIZES), 0, sum(SIZES))
        assert row.sizes == {least(size): 1 for size in SIZES}
        assert sum(row.latencies.values()) == len(SIZES)
        assert row.peer == 0
    assert len(first.profile()) == len(second.profile()) == 1
    assert row_of(first, "tsend").address == str(second.address)
    assert row_of(second, "trecv").address == str(first.address)


def test_what_is_cancelled_is_an_error(ep: ofipy.Endpoint) -> None:
    receive = ep.trecv_into(bytearray(8), tag=1)
    assert receive.cancel()
    with pytest.raises(ofipy.Canceled):
        receive.wait(timeout=TIMEOUT)
    row = row_of(ep, "trecv")
    assert (row.peer, row.address) == (None, "")
    assert (row.operations, row.errors, row.bytes, row.sizes, row.latencies) == (1, 1, 0, {}, {})


@pytest.mark.needs("rma")
def test_remote_memory(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    room = np.zeros(4096, np.uint8)
    remote = ep.register(room, access="remote_read|remote_write|local").remote
    for _ in range(3):
        ep.write(b"x" * 100, me, remote[:100]).wait(timeout=TIMEOUT)
    ep.read(bytearray(200), me, remote[:200]).wait(timeout=TIMEOUT)
    for operation, number, size in (("write", 3, 100), ("read", 1, 200)):
        row = row_of(ep, operation)
        assert (row.operations, row.errors, row.bytes) == (number, 0, number * size)
        assert row.sizes == {least(size): number}


@pytest.mark.needs("multi_recv")
def test_a_multi_receive_counts_its_messages(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    messages = ep.trecv_many(bytearray(1000), tag=1)
    for _ in range(5):
        ep.tsend(b"x" * 32, me, tag=1).wait(timeout=TIMEOUT)
        messages.next(timeout=TIMEOUT)
    row = row_of(ep, "trecv")
    assert (row.operations, row.errors, row.bytes) == (5, 0, 160)


def test_without_the_hook_it_says_what_to_do(
    open_endpoint: OpenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OFIPY_HOOKS")
    with pytest.raises(ofipy.NotSupported, match='hooks="profile"'):
        open_endpoint().profile()
