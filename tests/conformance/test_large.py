# SPDX-License-Identifier: BSD-3-Clause
"""Beyond 4 GiB, where lengths and offsets no longer fit into 32 bits; with ``--large``.

What is sent is zeros, which a machine backs with one page, but for some marks; what receives them needs all the memory.
"""

from collections.abc import Callable

import numpy as np
import pytest
from remote import BOTH, hear, tell
from sides import Side, Sides

import ofipy
from ofipy import AtomicOp

pytestmark = [pytest.mark.needs("large"), pytest.mark.timeout(600)]

OpenEndpoint = Callable[..., ofipy.Endpoint]

SIZE = 2**32 + 4097
# Offsets of single bytes that are not 0: at both ends, around 4 GiB, around 2 GiB, and here and there.
MARKS = sorted(
    {0, SIZE - 1, 2**32 - 1, 2**32, 2**32 + 1, 2**31 - 1, 2**31, *range(12_345, SIZE, 100_000_007)}
)
TIMEOUT = 120


def marked() -> np.ndarray:
    memory = np.zeros(SIZE, np.uint8)
    memory[MARKS] = np.arange(len(MARKS)) % 255 + 1
    return memory


def is_marked(memory: np.ndarray) -> bool:
    return bool((memory[MARKS] == np.arange(len(MARKS)) % 255 + 1).all()) and np.count_nonzero(memory) == len(
        MARKS
    )


def send(side: Side) -> None:
    payload = marked()
    side.ep.tsend(payload, side.peer, tag=1).wait(timeout=TIMEOUT)
    side.sync(TIMEOUT)
    # The true length of what was cut.
    side.ep.send([payload[:5], payload], side.peer)
    side.sync(TIMEOUT)


def receive(side: Side) -> None:
    room = np.zeros(SIZE + 1, np.uint8)
    got = side.ep.trecv_into(room, side.peer, tag=1).wait(timeout=TIMEOUT)
    assert got.length == SIZE
    assert is_marked(room[:SIZE])
    assert room[SIZE] == 0
    side.sync(TIMEOUT)
    with pytest.raises(ofipy.Truncated) as caught:
        side.ep.recv_into(bytearray(100), side.peer).wait(timeout=TIMEOUT)
    assert caught.value.length == SIZE + 5
    side.sync(TIMEOUT)


def test_messages(sides: Sides) -> None:
    sides.run(send, receive, timeout=2 * TIMEOUT)


def reach(side: Side) -> None:
    ep, remote = side.ep, hear(side)
    assert len(remote) == SIZE
    memory = marked()
    ep.write(memory, side.peer, remote, complete="delivery").wait(timeout=TIMEOUT)
    side.sync(TIMEOUT)
    side.sync(TIMEOUT)
    memory[:] = 0
    ep.read(memory, side.peer, remote).wait(timeout=TIMEOUT)
    assert is_marked(memory)
    # Some bytes, far out.
    ep.write(b"far", side.peer, remote[2**32 + 5 : 2**32 + 8], complete="delivery").wait(timeout=TIMEOUT)
    side.sync(TIMEOUT)


def lend(side: Side) -> None:
    memory = np.zeros(SIZE, np.uint8)
    with side.ep.register(memory, access=BOTH) as region:
        tell(side, region)
        side.sync(TIMEOUT)
        assert is_marked(memory)
        side.sync(TIMEOUT)
        side.sync(TIMEOUT)
    assert bytes(memory[2**32 + 4 : 2**32 + 9]) == b"\0far\0"


@pytest.mark.needs("rma")
def test_rma(sides: Sides) -> None:
    sides.run(reach, lend, timeout=2 * TIMEOUT, progress="auto")


@pytest.mark.needs("atomic")
def test_atomics_far_out(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    memory = np.zeros(SIZE, np.uint8)
    with ep.register(memory, access=BOTH) as region:
        far = region.remote[2**32 + 8 : 2**32 + 16]
        assert ep.fetch_atomic(np.uint64(7), me, far, op=AtomicOp.SUM).wait(timeout=TIMEOUT) == 0
        assert ep.fetch_atomic(np.uint64(7), me, far, op=AtomicOp.SUM).wait(timeout=TIMEOUT) == 7
    assert memory[2**32 + 8] == 14
