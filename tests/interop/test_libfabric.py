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
        sender.tsend(pattern(size), to, tag=1, remote_data=2**64 - 5).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).remote_data == 2**64 - 5


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


@DIRECTIONS
def test_an_untagged_message_that_nobody_receives(pair: Pair, direction: str) -> None:
    """It stops libfabric's reading, so that nothing behind it is acknowledged; we set it aside and read on."""
    sender, to, receiver, source = sides(pair, direction)
    plain = sender.send(b"plain", to)
    behind = sender.tsend(b"behind", to, tag=1, complete="delivery")
    if direction == "from-libfabric":
        behind.wait(timeout=TIMEOUT)
    else:
        with pytest.raises(ofipy.TimedOut):
            behind.wait(timeout=0.3)
    room = bytearray(6)
    assert receiver.recv_into(room, source).wait(timeout=TIMEOUT).length == 5
    assert room[:5] == b"plain"
    assert receiver.trecv_into(room, source, tag=1).wait(timeout=TIMEOUT).length == 6
    assert room == b"behind"
    ofipy.wait_all([plain, behind], timeout=TIMEOUT)


@DIRECTIONS
def test_an_unknown_sender(pair: Pair, direction: str) -> None:
    """We know it by its address and can answer; libfabric takes the message without a name."""
    sender, receiver = open_on_loopback("ofi:tcp"), open_on_loopback("tcp")
    if direction == "to-libfabric":
        sender, receiver = receiver, sender
    sender.tsend(b"question", sender.insert(raw_address(receiver)), tag=1).wait(timeout=TIMEOUT)
    source = receiver.trecv_into(bytearray(8), tag=1).wait(timeout=TIMEOUT).source
    if direction == "to-libfabric":
        assert source is None
    else:
        assert source is not None
        assert raw_address(source) == raw_address(sender)
        answer = sender.trecv_into(room := bytearray(6), tag=2)
        receiver.tsend(b"answer", source, tag=2).wait(timeout=TIMEOUT)
        answer.wait(timeout=TIMEOUT)
        assert room == b"answer"
    sender.fabric.close()
    receiver.fabric.close()


@DIRECTIONS
def test_meeting_by_host_and_port(pair: Pair, direction: str) -> None:
    sender, _, receiver, _ = sides(pair, direction)
    port = int.from_bytes(raw_address(receiver)[2:4], "big")
    peer = sender.insert(f"127.0.0.1:{port}")
    assert raw_address(peer) == raw_address(receiver)
    assert sender.insert(str(peer.address)) == peer
    sender.tsend(b"found", peer, tag=1).wait(timeout=TIMEOUT)
    assert receiver.trecv_into(bytearray(5), tag=1).wait(timeout=TIMEOUT).length == 5


@DIRECTIONS
def test_over_ipv6(direction: str) -> None:
    """Either side opens the connection, and knows the other by it."""
    table = Path("/proc/net/if_inet6")
    if not table.exists() or f"{1:032x}" not in table.read_text():
        pytest.skip("no IPv6 over loopback here")
    theirs = open_on_loopback("ofi:tcp", ofipy.AddressFormat.IPV6)
    ours = open_on_loopback("tcp", ofipy.AddressFormat.IPV6)
    pair = ours, theirs, ours.insert(raw_address(theirs)), theirs.insert(raw_address(ours))
    sender, to, receiver, source = sides(pair, direction)
    assert len(raw_address(receiver)) == 28
    for size in (1, 70_000):
        room = np.zeros(size, np.uint8)
        receive = receiver.trecv_into(room, source, tag=size)
        sender.tsend(pattern(size), to, tag=size).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).source == source
        assert np.array_equal(room, pattern(size))
    answer = sender.trecv_into(bytearray(1), to, tag=2)
    receiver.tsend(b"a", source, tag=2).wait(timeout=TIMEOUT)
    answer.wait(timeout=TIMEOUT)
    ours.fabric.close()
    theirs.fabric.close()


# ---------------------------------------------------------------------------------------------------- remote memory


@DIRECTIONS
@pytest.mark.parametrize("wrong", ["key", "end", "rights"])
@pytest.mark.parametrize("operation", ["read", "write"])
def test_a_wrong_access_ends_the_connection(pair: Pair, direction: str, wrong: str, operation: str) -> None:
    """The wire has no other answer. What was asked for did not happen, and the next message connects anew."""
    sender, to, receiver, source = sides(pair, direction)
    memory = bytearray(b"untouched")
    rights = "remote_write" if (operation == "read") is (wrong == "rights") else "remote_read"
    remote = receiver.register(memory, access=rights).remote
    both = ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE
    lie = ofipy.RemoteRegion(
        key=remote.key + (wrong == "key"), offset=remote.offset + (wrong == "end"), length=9, access=both
    )
    if operation == "read":
        request = sender.read(bytearray(9), to, lie)
    else:
        request = sender.write(b"overwrite", to, lie, complete="delivery")
    with pytest.raises(ofipy.PeerLost if direction == "to-libfabric" else ofipy.Canceled):
        request.wait(timeout=TIMEOUT)
    assert memory == b"untouched"
    receive = receiver.trecv_into(bytearray(5), source, tag=1)
    sender.tsend(b"again", to, tag=1, complete="delivery").wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).length == 5


def test_a_region_that_is_closed_under_their_writes(pair: Pair) -> None:
    """From then on the memory is ours, whatever libfabric has under way."""
    ours, theirs, them, us = pair
    for size in (8, 300_000):
        for _ in range(10):
            memory, source = np.zeros(size, np.uint8), np.ones(size, np.uint8)
            region = ours.register(memory, access="remote_write")
            writes = [theirs.write(source, us, region.remote, complete="delivery") for _ in range(20)]
            writes[0].wait(timeout=TIMEOUT)
            region.close()
            memory[:] = 2
            ends = [error_of(write) for write in writes]
            assert (memory == 2).all()
            assert ends == sorted(ends), "one was taken behind one that was not"
            ours.tsend(b"still there", them, tag=1).wait(timeout=TIMEOUT)
            theirs.trecv_into(bytearray(11), us, tag=1).wait(timeout=TIMEOUT)


def error_of(request: ofipy.Request) -> bool:
    """Whether it failed: cancelled with its connection, or by a reset, when the connection ends with bytes unread."""
    try:
        request.wait(timeout=TIMEOUT)
    except (ofipy.Canceled, ofipy.PeerLost):
        return True
    return False


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
        tagged = ours.tsend(pattern(size), them, tag=7, remote_data=9, complete="match")
        ours.tsend(b"behind it", them, tag=8, complete="delivery").wait(timeout=TIMEOUT)
        assert not tagged.done
        room = np.zeros(size, np.uint8)
        assert theirs.trecv_into(room, us, tag=7).wait(timeout=TIMEOUT).remote_data == 9
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
