# SPDX-License-Identifier: BSD-3-Clause
"""Our ``tcp`` and libfabric's, in both directions, with neither knowing."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import Pair, open_on_loopback, raw_address

import ofipy

TIMEOUT = 20
SIZES = (0, 1, 8, 4096, 16384, 70_000, 1 << 20, 8 << 20)


def sides(pair: Pair, direction: str) -> tuple[ofipy.Endpoint, ofipy.Peer, ofipy.Endpoint, ofipy.Peer]:
    """Sender, its peer, receiver, its peer."""
    ours, theirs, them, us = pair
    return (ours, them, theirs, us) if direction == "to-libfabric" else (theirs, us, ours, them)


def pattern(size: int) -> np.ndarray:
    return (np.arange(size, dtype=np.uint32) * 7 + 3).astype(np.uint8)


DIRECTIONS = pytest.mark.parametrize("direction", ["to-libfabric", "from-libfabric"])


@DIRECTIONS
@pytest.mark.parametrize("complete", [None, "transmit", "delivery"])
@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
def test_messages(pair: Pair, direction: str, complete: str | None, tagged: bool) -> None:
    sender, to, receiver, source = sides(pair, direction)
    options = {} if complete is None else {"complete": complete}
    for size in SIZES:
        data, room = pattern(size), np.zeros(size, np.uint8)
        if tagged:
            receive = receiver.trecv_into(room, source, tag=size)
            send = sender.tsend(data, to, tag=size, **options)
        else:
            receive, send = receiver.recv_into(room, source), sender.send(data, to, **options)
        send.wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).length == size
        assert np.array_equal(room, data)


@DIRECTIONS
def test_unexpected_messages_and_their_acknowledgements(pair: Pair, direction: str) -> None:
    """Tagged ones are acknowledged before they are received, in the order sent; then received in another."""
    sender, to, receiver, source = sides(pair, direction)
    for tag in range(20):
        sender.tsend(pattern(1000 * tag), to, tag=tag, complete="delivery").wait(timeout=TIMEOUT)
    for tag in reversed(range(20)):
        room = np.zeros(1000 * tag, np.uint8)
        assert receiver.trecv_into(room, source, tag=tag).wait(timeout=TIMEOUT).length == len(room)
        assert np.array_equal(room, pattern(len(room)))


@DIRECTIONS
def test_an_unexpected_untagged_message_comes_later(pair: Pair, direction: str) -> None:
    sender, to, receiver, source = sides(pair, direction)
    sends = [sender.send(pattern(size), to) for size in (5, 100_000)]
    rooms = [np.zeros(size, np.uint8) for size in (5, 100_000)]
    for room in rooms:
        receiver.recv_into(room, source).wait(timeout=TIMEOUT)
        assert np.array_equal(room, pattern(len(room)))
    ofipy.wait_all(sends, timeout=TIMEOUT)


@DIRECTIONS
def test_remote_cq_data(pair: Pair, direction: str) -> None:
    sender, to, receiver, source = sides(pair, direction)
    for size in (0, 9, 200_000):
        receive = receiver.trecv_into(bytearray(size), source, tag=1)
        sender.tsend(pattern(size), to, tag=1, data=2**64 - 5).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).data == 2**64 - 5


def test_truncation_leaves_the_connection_up(pair: Pair) -> None:
    ours, theirs, them, us = pair
    cut = ours.trecv_into(bytearray(10), them, tag=1)
    theirs.tsend(pattern(100_000), us, tag=1).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.Truncated):
        cut.wait(timeout=TIMEOUT)
    room = bytearray(3)
    whole = ours.trecv_into(room, them, tag=2)
    theirs.tsend(b"yes", us, tag=2).wait(timeout=TIMEOUT)
    assert whole.wait(timeout=TIMEOUT).length == 3


def test_both_connect_at_once() -> None:
    """The larger address wins, whichever that is, also when both requests are on their way."""
    for _ in range(20):
        theirs, ours = open_on_loopback("ofi:tcp"), open_on_loopback("tcp")
        them, us = ours.insert(raw_address(theirs)), theirs.insert(raw_address(ours))
        rooms = bytearray(1), bytearray(1)
        receives = ours.trecv_into(rooms[0], them, tag=1), theirs.trecv_into(rooms[1], us, tag=1)
        sends = ours.tsend(b"o", them, tag=1), theirs.tsend(b"t", us, tag=1)
        ofipy.wait_all([*sends, *receives], timeout=TIMEOUT)
        assert rooms == (b"t", b"o")
        ours.fabric.close()
        theirs.fabric.close()


def test_match_complete_waits_for_the_receive(pair: Pair) -> None:
    """Tagged by a rendezvous, untagged since libfabric acknowledges what a receive took."""
    ours, theirs, them, us = pair
    ours.tsend(b"up", them, tag=0).wait(timeout=TIMEOUT)
    for size in (0, 10, 300_000):
        tagged = ours.tsend(pattern(size), them, tag=7, data=9, complete="match")
        ours.tsend(b"behind it", them, tag=8, complete="delivery").wait(timeout=TIMEOUT)
        assert not tagged.done
        room = np.zeros(size, np.uint8)
        assert theirs.trecv_into(room, us, tag=7).wait(timeout=TIMEOUT).data == 9
        tagged.wait(timeout=TIMEOUT)
        assert np.array_equal(room, pattern(size))
    untagged = ours.send(b"untagged", them, complete="match")
    theirs.recv_into(bytearray(8), us).wait(timeout=TIMEOUT)
    untagged.wait(timeout=TIMEOUT)


def test_what_the_wire_does_not_have(pair: Pair) -> None:
    ours, _, them, _ = pair
    operation = ours.domain.operations(1)
    memory = np.ones(1, np.uint64)
    operation["op"], operation["peer"], operation["context"] = int(ofipy.Op.ATOMIC), int(them), 5
    operation["atomic_op"], operation["datatype"] = int(ofipy.AtomicOp.SUM), 7
    operation["offset"], operation["length"], operation["remote_key"] = memory.ctypes.data, 8, 1
    ours.tsend(b"up", them, tag=0).wait(timeout=TIMEOUT)
    with pytest.raises(ofipy.NotSupported):
        ours.post(operation)


def test_the_other_side_closes(pair: Pair) -> None:
    ours, theirs, them, us = pair
    ours.tsend(b"up", them, tag=1, complete="delivery").wait(timeout=TIMEOUT)
    waiting = ours.trecv_into(bytearray(1), them, tag=5)
    theirs.fabric.close()
    with pytest.raises(ofipy.PeerLost):
        waiting.wait(timeout=TIMEOUT)
    with pytest.raises((ofipy.PeerLost, ofipy.ConnectionRefused)):
        ours.tsend(b"nobody", them, tag=1, complete="delivery").wait(timeout=TIMEOUT)
    del us


def test_rendezvous_that_libfabric_begins() -> None:
    """Only when told to, before it is loaded: in a process of its own."""
    environment = os.environ | {"FI_TCP_MAX_SAVED_SIZE": "16384"}
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("rendezvous.py"))],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "good"
