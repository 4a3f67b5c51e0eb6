# SPDX-License-Identifier: BSD-3-Clause
"""Atomics that the target's device carries out, in memory that its owner has registered for them and for no others."""

import numpy as np
import pytest
from remote import TIMEOUT, hear, tell
from sides import Side, Sides

import ofipy

pytestmark = [pytest.mark.needs("device_atomic"), pytest.mark.connected, pytest.mark.untagged]

ONE = np.uint64(1)
MANY = 300  # more than a path takes at once


def change(side: Side) -> None:
    ep, peer, remote = side.ep, side.peer, hear(side)
    assert remote.access & ofipy.Access.DEVICE_ATOMIC
    word, other = remote[:8], remote[8:]
    before = [ep.fetch_atomic(ONE, peer, word, op="sum").wait(timeout=TIMEOUT) for _ in range(5)]
    assert before == list(range(5))
    ep.atomic(np.int64(-2), peer, word, op="sum").wait(timeout=TIMEOUT)
    assert ep.compare_atomic(np.uint64(77), np.uint64(3), peer, word).wait(timeout=TIMEOUT) == 3
    assert ep.compare_atomic(np.uint64(99), np.uint64(3), peer, word).wait(timeout=TIMEOUT) == 77
    into = np.zeros(MANY, np.uint64)
    adds = [
        ep.fetch_atomic(ONE, peer, other, op="sum", into=into[place : place + 1].reshape(()))
        for place in range(MANY)
    ]
    ofipy.wait_all(adds, timeout=TIMEOUT)
    assert into.tolist() == list(range(MANY))
    assert ep.stats().atomics == 8 + MANY
    side.sync()


def be_changed(side: Side) -> None:
    words = np.zeros(2, np.uint64)
    tell(side, side.ep.register(words, access="device_atomic"))
    side.sync()
    assert words.tolist() == [77, MANY]


def test_add_and_swap(sides: Sides) -> None:
    sides.run(change, be_changed, progress="auto")


def add_beside(side: Side) -> None:
    remote = hear(side)
    requests = [side.ep.atomic(ONE, side.peer, remote, op="sum") for _ in range(MANY)]
    side.send(b"x", tag=2).wait(timeout=TIMEOUT)
    ofipy.wait_all(requests, timeout=TIMEOUT)
    side.sync()


def add_there(side: Side) -> None:
    word = np.zeros(1, np.uint64)
    tell(side, side.ep.register(word, access="device_atomic"))
    side.receive(bytearray(1), tag=2).wait(timeout=TIMEOUT)
    side.sync()
    assert word[0] == MANY


def test_beside_messages(sides: Sides) -> None:
    sides.run(add_beside, add_there, progress="auto")


def be_refused(side: Side) -> None:
    ep, peer = side.ep, side.peer
    plain, device = hear(side), hear(side)
    with pytest.raises(ofipy.RemoteAccessError, match="needs DEVICE_ATOMIC"):
        ep.fetch_atomic(ONE, peer, plain[:8], op="sum", flags="device_atomic")
    with pytest.raises(ofipy.RemoteAccessError, match="needs REMOTE_WRITE"):
        ep.write(ONE.tobytes(), peer, device[:8])
    for kind, op, dtype in (
        ("fetch", "sum", np.float64),
        ("fetch", "min", np.uint64),
        ("compare", "cswap_lt", np.uint64),
        ("base", "write", np.uint64),
    ):
        call = {"base": ep.atomic, "fetch": ep.fetch_atomic, "compare": ep.compare_atomic}[kind]
        operands = [dtype(1)] * (2 if kind == "compare" else 1)
        assert not ep.domain.atomic_valid(op, dtype, kind=kind, device=True)
        with pytest.raises(ofipy.NotSupported, match="not among the operations of the device"):
            call(*operands, peer, device[:8], op=op).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.InvalidArgument, match="one element, at an address that is a multiple"):
        ep.fetch_atomic(ONE, peer, device[4:12], op="sum").wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.FabricError):
        ep.fetch_atomic(np.ones(2, np.uint64), peer, device[:16], op="sum").wait(timeout=TIMEOUT)
    # Nothing of this has touched the memory, or the way there.
    assert ep.fetch_atomic(ONE, peer, device[:8], op="sum").wait(timeout=TIMEOUT) == 0
    side.sync()


def refuse(side: Side) -> None:
    words = np.zeros((2, 2), np.uint64)
    tell(side, side.ep.register(words[0], access="remote_read|remote_write"))
    tell(side, side.ep.register(words[1], access="device_atomic"))
    side.sync()
    assert words.tolist() == [[0, 0], [1, 0]]


def test_what_there_is_not(sides: Sides) -> None:
    sides.run(be_refused, refuse, progress="auto")


def ask_the_core(side: Side) -> None:
    """What a core that lies sends: the target's own says no."""
    remote = hear(side)
    lie = ofipy.RemoteRegion(
        remote.key, remote.offset, 8, ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE
    )
    with pytest.raises(ofipy.RemoteAccessError):
        side.ep.fetch_atomic(ONE, side.peer, lie, op="sum").wait(timeout=TIMEOUT)
    assert side.ep.fetch_atomic(ONE, side.peer, remote[:8], op="sum").wait(timeout=TIMEOUT) == 0
    side.sync()


def say_no(side: Side) -> None:
    word = np.zeros(1, np.uint64)
    tell(side, side.ep.register(word, access="device_atomic|remote_read|remote_write"))
    side.sync()
    assert word[0] == 1


@pytest.mark.needs("atomic")
def test_the_core_s_own_are_not_let_in(sides: Sides) -> None:
    sides.run(ask_the_core, say_no, progress="auto")
