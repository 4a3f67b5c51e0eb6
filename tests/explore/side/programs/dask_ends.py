# SPDX-License-Identifier: BSD-3-Clause
"""Connections of Dask: tasks that are cancelled at each place at which they wait, and threads that end them."""

import asyncio
import gc
import threading
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from board import Action, Board, Kind
from program import PATIENCE, Program, Stage, Wrong

from ofipy._base.binding import lib
from programs.tasks import make_task

__all__ = ["list_programs"]

OWED = 3
SIZES = (100_000, 8_000_000)
"""Bytes of a frame, which has a message of its own. Of the second a socket stores a part, so a task waits within it."""
FRAMES_MOST = 5
QUEUES = (b"1", b"2", b"4096")
"""Operations that a transmit queue has space for. In a small one a task waits between the messages of one write."""


def _run(stage: Stage, work: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE):
            await work(stage)

    try:
        asyncio.run(whole())
    except TimeoutError:
        raise Wrong("hang: connections of Dask") from None
    gc.collect()


async def _exchange(stage: Stage) -> None:
    """A message with frames each way, by tasks; then the end, behind which nothing is left at the endpoints."""
    import distributed.comm.utils
    from both_ends import pair
    from distributed.comm import CommClosedError
    from distributed.protocol import to_serialize

    # A thread of Dask's would stay.
    distributed.comm.utils.OFFLOAD_THRESHOLD = False
    lib.ofp_param_set(b"TX_QUEUE", stage.random.choice(QUEUES))
    data = np.arange(stage.random.choice(SIZES), dtype=np.uint8)
    sent = {"x": [to_serialize(data) for _ in range(stage.random.randint(1, FRAMES_MOST))]}
    ends_both = stage.random.choice((True, False))
    async with pair() as (here, there, listener):
        await here.write("begin")
        assert await there.read() == "begin"
        stage.board.arm()
        tasks = [
            make_task(stage.board, "read there", there.read()),
            make_task(stage.board, "read here", here.read()),
            make_task(stage.board, "write here", here.write(sent)),
            make_task(stage.board, "write there", there.write(sent)),
        ]
        # As Dask does, the side of a call that was cancelled is ended; the other side learns of it, or is ended too.
        for each in tasks:
            own = here if each.get_name().endswith(" here") else there
            each.add_done_callback(partial(_end_failed, (here, there) if ends_both else (own,)))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        stage.board.disarm()
        for result in results:
            if isinstance(result, BaseException) and not isinstance(
                result, asyncio.CancelledError | CommClosedError
            ):
                raise result
        if not stage.has_fault and any(isinstance(result, BaseException) for result in results):
            raise Wrong(f"an error without a fault: {results}")
        hubs = [here._hub, there._hub]
        here.abort()
        there.abort()
        await _check_left(hubs)
        del listener


def _end_failed(comms: "tuple[Any, ...]", task: "asyncio.Task[Any]") -> None:
    if task.cancelled() or task.exception():
        for comm in comms:
            comm.abort()


async def _check_left(hubs: list[Any]) -> None:
    """Nothing is left of the connections: no message, no receive, and nothing that the hub looks after."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE / 2
    while True:
        left = []
        for hub in hubs:
            if hub.endpoint.closed:
                continue
            hub.tidy()
            stats = hub.endpoint.stats()
            if hub._ended or stats.unexpected_messages:
                left.append(f"{hub._ended}, {stats.unexpected_messages} unexpected messages")
        if not left:
            return
        if loop.time() > until:
            raise Wrong(f"leftovers of a connection: {left[0]}")
        await asyncio.sleep(0.005)


def exchange(provider: str, stage: Stage) -> None:
    """Both ends within one loop."""
    import dask.config

    with dask.config.set({"distributed.comm.ofi.provider": provider}):
        _run(stage, _exchange)


def warm(provider: str, stage: Stage) -> None:
    """Have Dask start the threads that it keeps."""
    import dask.config

    async def talk(_: Stage) -> None:
        from both_ends import pair
        from distributed.protocol import to_serialize

        async with pair() as (here, there, _):
            await here.write({"x": to_serialize(np.zeros(300_000, np.uint8))})
            await there.read()

    with dask.config.set({"distributed.comm.ofi.provider": provider}):
        _run(stage, talk)


# ---------------------------------------------------------------------------------------------------------- threads


class _Done:
    """A request that has finished."""

    done = True

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def wait(self) -> "_Done":
        return self

    def cancel(self) -> bool:
        return False


class _Endpoint:
    """Counts what is sent; a send lets other threads run, as one that waits for the core's lock does."""

    closed = False

    def __init__(self, board: Board) -> None:
        self.sent: list[tuple[int, int]] = []
        self.closings = 0
        self._board = board

    def tsend(self, piece: bytes, peer: object, tag: int, incarnation: int) -> _Done:
        del incarnation
        self.sent.append((len(piece), tag))
        if self._board.reach(Kind.AWAIT, "tsend") == Action.LATE:
            pass  # it has been late
        return _Done()

    def trecv(self, peer: object, tag: int, incarnation: int) -> _Done:
        del incarnation
        from ofipy.dask import wire

        return _Done(wire.GOODBYE)

    def close(self) -> None:
        self.closed = True
        self.closings += 1


def end_in_threads(stage: Stage) -> None:
    """One thread ends a connection, another one tidies: what is owed is sent once, and the other user stays."""
    from ofipy.dask import hub as hubs

    endpoint = _Endpoint(stage.board)

    async def make() -> Any:
        made = hubs.Hub(endpoint)  # type: ignore[arg-type]
        made.take()
        made.take()
        return made

    loop = asyncio.new_event_loop()
    hub = loop.run_until_complete(make())
    peer: Any = "peer"
    ended = hubs.Ended(peer, 1, 2, sent=[], owed=OWED)
    errors: list[str] = []

    def attempt(call: Any) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(f"{type(error).__name__}: {error}")

    stage.board.arm()
    ending = threading.Thread(target=attempt, args=(lambda: hub.end(ended),))
    ending.start()
    while ending.is_alive():
        attempt(hub.tidy)
        ending.join(0.001)
    attempt(hub.tidy)
    stage.board.disarm()
    with suppress(RuntimeError):
        loop.close()
    if errors:
        raise Wrong(f"two threads ended a connection: {errors[0]}")
    if len(endpoint.sent) != OWED + 1:
        raise Wrong(f"{OWED + 1} messages were to be sent, and {len(endpoint.sent)} were")
    if hub._users != 1 or endpoint.closed:
        raise Wrong(f"one of two users has left, and {hub._users} are counted")


def list_programs() -> list[Program]:
    """Nothing where Dask is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        return []
    import both_ends  # noqa: F401

    # Its defaults are entered before anything is configured.
    import ofipy.dask.backend  # noqa: F401

    return [
        *(
            Program(
                f"dask/{provider}/exchange",
                Kind.AWAIT,
                partial(exchange, provider),
                lists_blocks=False,
                warm=partial(warm, provider),
            )
            for provider in ("shm", "tcp")
        ),
        Program("dask-threads/shm/end", Kind.AWAIT, end_in_threads, lists_blocks=False),
    ]
