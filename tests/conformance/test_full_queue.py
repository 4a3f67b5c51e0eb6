# SPDX-License-Identifier: BSD-3-Clause
"""A full transmit queue: who waits, for how long, and who must not; and memory that is refused when it is used."""

import asyncio
import time
from collections.abc import Callable

import numpy as np
import pytest

import ofipy

pytestmark = pytest.mark.connected

TIMEOUT = 10
QUEUE = 4

Open = Callable[..., ofipy.Endpoint]


def fill(ep: ofipy.Endpoint, me: ofipy.Peer, count: int) -> list[ofipy.Request]:
    """Sends that stay under way, since each waits for its receive."""
    return [ep.tsend(b"queued", me, tag=1, complete="match") for _ in range(count)]


@pytest.mark.needs("core_matching")
def test_a_posting_call_waits_for_its_time(open_endpoint: Open) -> None:
    ep = open_endpoint(tx_size=QUEUE)
    me = ep.insert(ep.address)
    sends = fill(ep, me, QUEUE)
    prepared = ep.prepare_tsend(b"prepared", me, tag=1, complete="match")
    started = time.monotonic()
    for post in (
        lambda: ep.tsend(b"late", me, tag=1, complete="match", room_timeout=0.05),
        lambda: ep.tsend(b"late", me, tag=1, room_timeout=0.05),
        lambda: ep.send(b"late", me, room_timeout=0.05),
        lambda: prepared.start(room_timeout=0.05),
        lambda: ofipy.start(prepared, room_timeout=0.05),
    ):
        with pytest.raises(ofipy.TimedOut, match=r"no room in the transmit queue within 0\.05 s"):
            post()
    assert time.monotonic() - started >= 0.25
    # Nothing of it was sent: as many messages come as were accepted.
    for _ in sends:
        assert ep.trecv(tag=1).wait(timeout=TIMEOUT).data == b"queued"
    ofipy.wait_all(sends, timeout=TIMEOUT)
    assert ep.probe(tag=1) is None
    prepared.start(room_timeout=0)
    assert ep.trecv(tag=1).wait(timeout=TIMEOUT).data == b"prepared"
    prepared.wait(timeout=TIMEOUT)


@pytest.mark.needs("core_matching")
def test_where_a_loop_runs_the_operation_waits_in_the_core(open_endpoint: Open) -> None:
    ep = open_endpoint(tx_size=QUEUE)
    me = ep.insert(ep.address)

    async def both_sides() -> None:
        sends = [ep.tsend(bytes([number]), me, tag=1, complete="match") for number in range(2 * QUEUE)]
        with pytest.raises(ofipy.Again, match="await what was sent") as refused:
            ep.tsend(b"too many", me, tag=1, complete="match")
        assert refused.value.operation == "tsend"
        with pytest.raises(ofipy.Again):
            ep.prepare_tsend(b"too many", me, tag=1, complete="match").start()
        # The receiver is in the same loop: had a call waited, it would be for ever. The order is that of the calls.
        for number in range(2 * QUEUE):
            assert (await ep.trecv(tag=1)).data == bytes([number])
        for send in sends:
            await send
        last = ep.tsend(b"again", me, tag=1)
        assert (await ep.trecv(tag=1)).data == b"again"
        await last

    asyncio.run(asyncio.wait_for(both_sides(), TIMEOUT))


def test_an_array_made_read_only_is_refused(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    array = np.zeros(8, np.uint8)
    for _ in range(2):  # also when it is the one that was used last
        receive = ep.trecv_into(array, tag=1)
        ep.tsend(b"12345678", me, tag=1).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
    array.flags.writeable = False
    with pytest.raises(ofipy.BufferTypeError, match="read-only"):
        ep.trecv_into(array, tag=1)
    ep.tsend(array, me, tag=2).wait(timeout=TIMEOUT)
    assert ep.trecv(tag=2).wait(timeout=TIMEOUT).data == b"12345678"
    assert bytes(array) == b"12345678"
