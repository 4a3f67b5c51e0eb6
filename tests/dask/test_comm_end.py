# SPDX-License-Identifier: BSD-3-Clause
"""What is left of a connection when either side ends it, over each transport."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import numpy as np
import pytest
from both_ends import ANY_PORT, echo, pair, run
from distributed.comm import CommClosedError, connect, listen
from distributed.protocol import to_serialize

from ofipy._base.errors import PeerLost
from ofipy.dask import wire
from ofipy.pingpong.leftovers import count_descriptors

pytestmark = [pytest.mark.usefixtures("provider"), pytest.mark.timeout(60)]


@pytest.mark.parametrize("how", ["close", "abort"])
def test_an_end_is_heard_on_the_other_side(how: str) -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            reading = asyncio.create_task(there.read())
            await asyncio.sleep(0.05)
            ended = getattr(here, how)()
            if ended is not None:
                await ended
            assert here.closed()
            with pytest.raises(CommClosedError):
                await reading
            assert there.closed()
            for comm in (here, there):
                with pytest.raises(CommClosedError):
                    await comm.read()
                with pytest.raises(CommClosedError):
                    await comm.write("x")
            here.abort()
            await here.close()

    run(test())


@pytest.mark.parametrize("loses", [0, 1], ids=["the caller loses it", "the listener loses it"])
def test_a_hole_ends_both_sides(loses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # A message of the hub's endpoint without a tag, which Dask does not send, costs it the peer.
    monkeypatch.setenv("OFIPY_HOOKS", "fault:lose=1,operation=send")

    async def test() -> None:
        async with pair() as ends:
            here, there, listener = ends
            await here.write("before")
            assert await there.read() == "before"
            reading = [asyncio.create_task(comm.read()) for comm in (here, there)]
            await asyncio.sleep(0.05)
            comm = ends[loses]
            with pytest.raises(PeerLost):
                await comm._hub.endpoint.send(b"", comm._peer)
            for each in reading:
                with pytest.raises(CommClosedError):
                    await each
            for comm in (here, there):
                with pytest.raises(CommClosedError):
                    await comm.write("behind the hole")
            again = await connect(listener.contact_address)
            await again.write("again")
            again.abort()

    run(test())


def test_a_reader_learns_of_its_own_close() -> None:
    async def test() -> None:
        async with pair() as (here, _, _):
            reading = asyncio.create_task(here.read())
            await asyncio.sleep(0.05)
            await here.close()
            with pytest.raises(CommClosedError):
                await reading

    run(test())


def test_what_was_written_before_the_end_arrives() -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            await here.write({"x": to_serialize(np.ones(3_000_000, np.uint8))})
            closing = asyncio.create_task(here.close())
            assert np.asarray((await there.read())["x"]).sum() == 3_000_000
            with pytest.raises(CommClosedError):
                await there.read()
            await closing

    run(test())


def test_a_cancelled_read_ends_the_connection() -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await here.read()
            assert here.closed()
            with pytest.raises(CommClosedError):
                await there.read()

    run(test())


async def begin_a_message(here: Any) -> list[Any]:
    """Send a head; returns the messages that it promises."""
    head, rest, _ = wire.pack_frames([bytes([number]) * (1 << 20) for number in range(3)])
    await here._send(head, wire.Kind.HEAD)
    return rest


async def over(*hubs: Any) -> None:
    """Wait until nothing is left of connections that have ended."""
    while any(hub._ended for hub in hubs):
        for hub in hubs:
            hub.tidy()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["cancelled", "closed by another task"])
def test_a_read_that_ends_within_a_message_leaves_nothing(how: str) -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            rest = await begin_a_message(here)
            reading = asyncio.create_task(there.read())
            while not there._frames:
                await asyncio.sleep(0)
            if how == "cancelled":
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            else:
                there.abort()
                with pytest.raises(CommClosedError):
                    await reading
            assert there.closed()
            for each in rest:
                await here._send(each, wire.Kind.FRAMES)
            for each in ([], rest):
                await here.write({"x": to_serialize(b"".join(each))})
            await here.close()
            async with asyncio.timeout(20):
                await over(here._hub, there._hub)
            assert there._hub.endpoint.stats().unexpected_messages == 0
            assert all(request.done for request, _ in here._sent)

    run(test())


@pytest.mark.parametrize("sent", range(3))
def test_a_write_that_ends_within_a_message_leaves_nobody_waiting(sent: int) -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            real = here._send
            pieces = 0

            async def send(piece: Any, kind: wire.Kind) -> None:
                nonlocal pieces
                if pieces > sent:
                    await asyncio.get_running_loop().create_future()  # no room, for ever
                pieces += 1
                await real(piece, kind)

            here._send = send
            reading = asyncio.create_task(there.read())
            arrays = [to_serialize(np.full(1 << 20, number, np.uint8)) for number in range(3)]
            writing = asyncio.create_task(here.write(arrays))
            while not there._frames:
                await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            with pytest.raises(CommClosedError, match="within a message"):
                await reading
            async with asyncio.timeout(20):
                await over(here._hub, there._hub)
            assert there._hub.endpoint.stats().unexpected_messages == 0

    run(test())


def test_what_nobody_reads_is_let_go() -> None:
    async def test() -> None:
        async with pair() as (here, there, listener):
            for _ in range(3):
                await here.write({"x": to_serialize(bytes(1 << 20))})
            there.abort()
            other = await connect(listener.contact_address)
            await here.close()
            hub = other._hub
            for _ in range(200):
                hub.tidy()
                there._hub.tidy()
                await asyncio.sleep(0.01)
                if not hub._ended and not there._hub._ended:
                    break
            assert not hub._ended
            assert not there._hub._ended
            other.abort()

    run(test())


def test_abort_after_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    kept: list[Any] = []

    async def test() -> None:
        async with pair() as (here, there, _):
            kept.extend((here, there))
            await here.write("x")

    async def dangling() -> None:
        accepted: asyncio.Queue[Any] = asyncio.Queue()
        listener = await listen(ANY_PORT, accepted.put)
        kept.extend((await connect(listener.contact_address), await accepted.get()))
        listener.stop()

    run(test())
    for comm in kept:
        comm.abort()
    kept.clear()
    run(dangling())
    with caplog.at_level("WARNING", "distributed.comm.ofi"):
        kept.clear()
        gc.collect()
    assert "dangling" in caplog.text


def test_two_loops_in_one_process() -> None:
    async def test() -> None:
        async with listen(ANY_PORT, echo) as listener:
            got: list[Any] = []

            async def ask() -> None:
                comm = await connect(listener.contact_address)
                await comm.write({"x": 1})
                got.append(await comm.read())
                await comm.close()

            thread = threading.Thread(target=lambda: asyncio.run(ask()))
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.01)
            assert got == [{"x": 1}]

    run(test())


def test_a_loop_that_has_ended_leaves_no_endpoint() -> None:
    """The one by which a loop calls others ends with it, and with it its descriptors."""

    async def talk() -> None:
        async with pair() as (here, there, _):
            await here.write({"x": to_serialize(np.zeros(300_000, np.uint8))})
            await there.read()

    def count() -> int:
        gc.collect()
        return count_descriptors()

    run(talk())
    before = count()
    for _ in range(3):
        run(talk())
    assert count() <= before
