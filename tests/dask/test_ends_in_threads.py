# SPDX-License-Identifier: BSD-3-Clause
"""Connections, and frames of theirs, that several threads let go of at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dask.config
import pytest
from both_ends import pair, run
from distributed.comm import CommClosedError

from ofipy._base.errors import Again
from ofipy.dask import hub as hubs
from ofipy.dask import wire
from ofipy.dask.memory import LEAST, FrameMemory

pytestmark = pytest.mark.timeout(60)

OWED = 3
WAIT = 20.0  # seconds; reached by a failure only


class Done:
    """A request that has finished."""

    done = True

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def wait(self) -> Done:
        return self

    def __await__(self) -> Iterator[None]:
        return iter(())


class Endpoint:
    """Keeps who sends what; the first send waits until it may go on, as one that lets other threads run."""

    closed = False

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, wire.Kind]] = []
        self.senders: set[int] = set()
        self.sends, self.may_go_on = threading.Event(), threading.Event()

    def tsend(self, piece: bytes, peer: object, tag: int, incarnation: object) -> Done:
        assert len(self.sent) <= OWED, "sent more than was owed"
        self.sent.append((piece, wire.Kind(tag & 0xFF)))
        self.senders.add(threading.get_ident())
        if not self.sends.is_set():
            self.sends.set()
            assert self.may_go_on.wait(WAIT)
        return Done()

    def trecv(self, peer: object, tag: int, incarnation: object) -> Done:
        return Done(wire.GOODBYE)

    def close(self) -> None:
        self.closed = True


def new_hub() -> tuple[Any, Any, Any]:
    """A hub with two connections, its endpoint, and one of the two that has ended within a message."""
    endpoint: Any = Endpoint()
    hub = hubs.Hub(endpoint)
    hub.take()
    hub.take()
    peer: Any = "peer"
    return hub, endpoint, hubs.Ended(peer, 1, 2, sent=[], owed=OWED)


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def check_sent_once(hub: Any, endpoint: Any, ended: Any) -> None:
    assert endpoint.sent == [(b"", wire.Kind.FRAMES)] * OWED + [(wire.GOODBYE, wire.Kind.HEAD)]
    assert (ended.owed, ended.said, hub._ended, hub._users) == (0, True, [], 1)


def test_a_loop_that_runs_ends_what_other_threads_end() -> None:
    async def test() -> None:
        hub, endpoint, ended = new_hub()
        endpoint.may_go_on.set()
        for thread in (in_thread(lambda: hub.end(ended)), in_thread(hub.tidy)):
            thread.join(WAIT)  # the loop stands meanwhile
            assert not thread.is_alive()
        assert not endpoint.sent
        while not ended.said or hub._ended:
            await asyncio.sleep(0)
        check_sent_once(hub, endpoint, ended)
        assert endpoint.senders == {threading.get_ident()}

    run(test())


class Running:
    """A request that was too late to be cancelled: it finishes only while somebody awaits it."""

    done = False

    def __await__(self) -> Iterator[None]:
        yield
        self.done = True

    def cancel(self) -> bool:
        return False

    def wait(self) -> Running:
        return self


def test_a_frame_that_still_comes_is_awaited() -> None:
    """Without any other call its endpoint would make no progress, so it would stay until the patience is over."""

    async def test() -> None:
        hub, endpoint, ended = new_hub()
        endpoint.may_go_on.set()
        ended.frames = [Running()]
        hub.end(ended)
        while hub._ended:
            await asyncio.sleep(0)
        assert hub._users == 1

    run(test())


def test_a_side_without_room_receives() -> None:
    """Two sides that both end with full transmit queues would wait for each other."""

    async def test() -> None:
        hub, endpoint, ended = new_hub()
        endpoint.may_go_on.set()
        tsend, trecv = endpoint.tsend, endpoint.trecv
        has_received = False

        def send(*arguments: Any, **names: Any) -> Done:
            if not has_received:
                raise Again("the transmit queue is full")
            return tsend(*arguments, **names)

        def receive(*arguments: Any, **names: Any) -> Done:
            nonlocal has_received
            has_received = True
            return trecv(*arguments, **names)

        endpoint.tsend, endpoint.trecv = send, receive
        hub.end(ended)
        while hub._ended:
            await asyncio.sleep(0)
        check_sent_once(hub, endpoint, ended)

    run(test())


def test_after_the_loop_one_thread_ends_and_others_do_not_wait_for_it() -> None:
    async def made() -> tuple[Any, Any, Any]:
        return new_hub()

    loop = asyncio.new_event_loop()  # kept: its end closes the endpoint
    hub, endpoint, ended = loop.run_until_complete(made())
    loop.close()
    first = in_thread(lambda: hub.end(ended))
    assert endpoint.sends.wait(WAIT)
    hub.tidy()
    second = hubs.Ended(ended.peer, 3, 4, sent=[], said=True)
    hub.end(second)
    assert len(endpoint.sent) == 1
    endpoint.may_go_on.set()
    first.join(WAIT)
    assert not first.is_alive()
    assert (second.said_goodbye, hub._users) == (True, 0)  # the first thread saw to it, too
    hub._users += 1
    check_sent_once(hub, endpoint, ended)


@pytest.mark.usefixtures("provider")
def test_abort_by_another_thread() -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            ended_by: list[int] = []
            end = here._hub.end

            def keep(ended: Any) -> None:
                ended_by.append(threading.get_ident())
                end(ended)

            here._hub.end = keep
            reading = asyncio.create_task(there.read())
            own = asyncio.create_task(here.read())
            await asyncio.sleep(0)
            in_thread(here.abort).join(WAIT)
            assert here.closed()
            for each in (reading, own):
                with pytest.raises(CommClosedError):
                    await each
            assert ended_by == [threading.get_ident()]

    run(test())


@pytest.mark.usefixtures("provider")
def test_a_write_without_room_sends_nothing_after_the_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with pair() as (here, there, _):
            full = asyncio.Event()
            endpoint = here._hub.endpoint
            sends = endpoint.tsend

            class Full:
                def __getattr__(self, name: str) -> Any:
                    return getattr(endpoint, name)

                def tsend(self, piece: Any, peer: Any, tag: int, incarnation: int | None) -> Any:
                    if here.closed():
                        kinds.append(wire.Kind(tag & 0xFF))
                        return sends(piece, peer, tag=tag, incarnation=incarnation)
                    full.set()
                    raise Again("full")

            kinds: list[wire.Kind] = []
            monkeypatch.setattr(here._hub, "endpoint", Full())
            writing = asyncio.create_task(here.write("x"))
            await full.wait()
            here.abort()
            with pytest.raises(CommClosedError):
                await writing
            with pytest.raises(CommClosedError):
                await there.read()
            assert kinds == [wire.Kind.HEAD]  # the goodbye

    run(test())


class Taken:
    """Kept memory that another thread drops while its size is looked at."""

    def __init__(self, size: int, drop: Callable[[], object]) -> None:
        self.size, self.drop = size, drop

    @property
    def nbytes(self) -> int:
        drop, self.drop = self.drop, lambda: None
        thread = in_thread(drop)
        thread.join(WAIT)
        assert not thread.is_alive()
        return self.size


@pytest.fixture
def keeps_three() -> Iterator[None]:
    with dask.config.set(
        {"distributed.comm.ofi.keep": f"{3 * LEAST}", "distributed.comm.ofi.keep-for": "10 minutes"}
    ):
        yield


@pytest.mark.usefixtures("keeps_three")
def test_memory_that_another_thread_drops_while_it_is_chosen() -> None:
    async def main() -> None:
        memory = FrameMemory()
        held = [memory.take(3 * LEAST)]
        memory._come_back(Taken(LEAST, lambda: None))  # type: ignore[arg-type]
        (kept,) = memory._kept
        kept.memory.drop = held.clear  # type: ignore[attr-defined]
        frame = memory.take(LEAST)
        assert len(frame) == LEAST
        assert memory.kept == 3 * LEAST  # the other thread's

    asyncio.run(main())


@pytest.mark.usefixtures("keeps_three")
def test_memory_that_another_thread_drops_while_it_is_swept() -> None:
    async def main() -> None:
        memory = FrameMemory()
        held = [memory.take(3 * LEAST)]
        memory.take(LEAST)
        (kept,) = memory._kept

        class Since(float):
            def __le__(self, until: float) -> bool:
                thread = in_thread(held.clear)
                thread.join(WAIT)
                return True

        kept.since = Since()
        memory._drop_old()
        assert memory.kept == 3 * LEAST  # the other thread's, which is not old

    asyncio.run(main())
