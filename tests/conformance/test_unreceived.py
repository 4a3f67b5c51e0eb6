# SPDX-License-Identifier: BSD-3-Clause
"""What nobody receives is in nobody's way: bounded memory at the target, and everything else goes on."""

import resource
from collections.abc import Callable

import numpy as np
import pytest
from machine import SLOWNESS
from remote import BOTH, TIMEOUT, hear, tell
from sides import Side, Sides

import ofipy

MIB = 1 << 20
UNRECEIVED, AFTER, THIRD = 10, 11, 12


def flood(side: Side, count: int) -> None:
    ep, remote, source = side.ep, hear(side), np.zeros(MIB, np.uint8)
    sends = [ep.tsend(source, side.peer, tag=UNRECEIVED, remote_data=number) for number in range(count)]
    ep.tsend(b"after", side.peer, tag=AFTER).wait(timeout=TIMEOUT)
    ep.write(b"written", side.peer, remote[:7], complete="delivery").wait(timeout=TIMEOUT)
    back = bytearray(7)
    ep.read(back, side.peer, remote[:7]).wait(timeout=TIMEOUT)
    assert back == b"written"
    third = side.target.open(progress="auto")
    try:
        third.tsend(b"third", third.insert(side.peer.address), tag=THIRD).wait(timeout=TIMEOUT)
        side.sync()
        ofipy.wait_all(sends, timeout=TIMEOUT)
    finally:
        third.fabric.close()
    side.sync()


def peak_memory() -> int:
    """Bytes, of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def leave_lying(side: Side, count: int) -> None:
    memory, before = np.zeros(100, np.uint8), peak_memory()
    tell(side, side.ep.register(memory, access=BOTH))
    for tag, text in ((AFTER, b"after"), (THIRD, b"third")):
        into = bytearray(5)
        side.ep.trecv_into(into, tag=tag).wait(timeout=TIMEOUT)
        assert into == text
    side.sync()
    assert bytes(memory[:7]) == b"written"
    if not side.target.in_process:
        # OFIPY_UNEXPECTED_SIZE, 64 MiB, and what the rest of the test takes.
        assert peak_memory() - before < 128 * MIB
    into = bytearray(MIB)
    for number in range(count):
        assert side.ep.trecv_into(into, side.peer, tag=UNRECEIVED).wait(timeout=TIMEOUT).remote_data == number
    side.sync()


@pytest.mark.needs("rma")
def test_a_gibibyte_that_nobody_receives(sides: Sides) -> None:
    sides.run(flood, leave_lying, 1024 // SLOWNESS, progress="auto", timeout=120)


# What a message takes of the bound beside payload of more than 64 bytes; and what tcp's senders have been granted
# already when it is reached.
ENTRY, GRANTED = 256, 1 << 16


@pytest.mark.needs("core_matching")
@pytest.mark.parametrize("size", [0, 1, 65])
def test_short_messages_count_with_all_they_take(
    open_endpoint: Callable[..., ofipy.Endpoint], size: int
) -> None:
    limit, count = 100_000, 2000
    ep, target = open_endpoint(), open_endpoint(unexpected_size=limit)
    peer, payload = ep.insert(target.address), bytes(size)
    sends = [ep.tsend(payload, peer, tag=UNRECEIVED, remote_data=number) for number in range(count)]
    while target.stats().unexpected_messages < count:
        target.domain.progress()
    kept = count - target.stats().announced_messages
    assert 1 <= kept * (ENTRY + (size if size > 64 else 0)) <= limit + GRANTED
    into = bytearray(size)
    for number in range(count):
        assert target.trecv_into(into, tag=UNRECEIVED).wait(timeout=TIMEOUT).remote_data == number
    ofipy.wait_all(sends, timeout=TIMEOUT)
