# SPDX-License-Identifier: BSD-3-Clause
"""What nobody receives is in nobody's way: bounded memory at the target, and everything else goes on."""

import resource

import numpy as np
import pytest
from remote import BOTH, TIMEOUT, hear, tell
from sides import Side, Sides

import ofipy

MIB = 1 << 20
UNRECEIVED, AFTER, THIRD = 10, 11, 12


def flood(side: Side, count: int) -> None:
    ep, remote, source = side.ep, hear(side), np.zeros(MIB, np.uint8)
    sends = [ep.tsend(source, side.peer, tag=UNRECEIVED, data=number) for number in range(count)]
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
        assert side.ep.trecv_into(into, side.peer, tag=UNRECEIVED).wait(timeout=TIMEOUT).data == number
    side.sync()


@pytest.mark.needs("rma")
def test_a_gibibyte_that_nobody_receives(sides: Sides) -> None:
    sides.run(flood, leave_lying, 1024, progress="auto", timeout=120)
