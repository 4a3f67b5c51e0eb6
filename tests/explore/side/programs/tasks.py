# SPDX-License-Identifier: BSD-3-Clause
"""Tasks of an event loop, each of which may be cancelled, or dropped, at each place at which it waits."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from functools import partial
from typing import Any

from board import Action, Board, Kind
from numbered import message, number_of
from pair import Pair
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from ofipy._base.binding import lib
from ofipy._completion.aio import Poller
from programs.storms import send_fresh, warm

__all__ = ["list_programs", "make_task"]

TARGETS = ("shm", "tcp", "link", "rdmfake:gets")
TAG, MESSAGES, SIZE = 7, 4, 60_000
LITTLE = 0.05  # seconds


class Steps:
    """Runs a coroutine; each place at which it waits is a step."""

    def __init__(self, board: Board, name: str, work: Coroutine[Any, Any, Any]) -> None:
        self._board, self._name, self._work = board, name, work

    def __await__(self) -> Generator[Any, Any, Any]:
        sent: Any = None
        while True:
            try:
                waiting = self._work.send(sent)
            except StopIteration as end:
                return end.value
            action = self._board.reach(Kind.AWAIT, self._name)
            if action == Action.DROP:
                self._work.close()
                raise asyncio.CancelledError
            if action == Action.CANCEL:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                sent = yield waiting
            except BaseException as error:
                try:
                    self._work.throw(error)
                except StopIteration as end:
                    return end.value
                raise Wrong("a cancelled task goes on waiting") from error


def make_task(board: Board, name: str, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """A task that may be cancelled where it waits."""

    async def whole() -> Any:
        return await Steps(board, name, work)

    return asyncio.get_running_loop().create_task(whole(), name=name)


async def _wait_or_cancel(request: Any) -> Any:
    """Await a request; a task that is cancelled, or dropped, cancels it, since its operation would go on."""
    try:
        return await request
    except BaseException:
        request.cancel()
        raise


async def _receive(endpoint: Any, into: bool, arrived: list[int]) -> None:
    if not into:
        arrived.append(number_of((await _wait_or_cancel(endpoint.trecv(tag=TAG))).data))
        return
    buffer = bytearray(SIZE)
    request = endpoint.trecv_into(buffer, tag=TAG)
    try:
        await _wait_or_cancel(request)
    finally:
        # It may have been too late to cancel it: then the message is there, or comes.
        with suppress(ofipy.Canceled):
            request.wait(timeout=PATIENCE)
            arrived.append(number_of(buffer))


async def _send(endpoint: Any, data: bytes, peer: Any) -> int:
    await _wait_or_cancel(endpoint.tsend(data, peer, tag=TAG))
    return number_of(data)


async def _exchange(stage: Stage, pair: Pair, into: bool) -> None:
    """Receives first, so that each waits for its message; then the messages, one by one."""
    arrived: list[int] = []
    # A loop whose polls do not pay sleeps at once.
    poller = Poller.of(asyncio.get_running_loop())
    poller.longest_spin = stage.random.choice((0, poller.longest_spin))
    receives = [
        make_task(stage.board, f"receive {number}", _receive(pair.a, into, arrived))
        for number in range(MESSAGES)
    ]
    await asyncio.sleep(0)
    sends = [
        make_task(stage.board, f"send {number}", _send(pair.b, message(number, SIZE), pair.to_a))
        for number in range(1, MESSAGES + 1)
    ]
    await _receive_rest(pair, sends, receives, arrived)
    stage.board.disarm()
    for result in await asyncio.gather(*receives, *sends, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(
            result, asyncio.CancelledError | ofipy.Canceled
        ):
            raise result
    if len(set(arrived)) != len(arrived):
        raise Wrong(f"a message came twice: {arrived}")


async def _receive_rest(
    pair: Pair, sends: "list[asyncio.Task[Any]]", receives: "list[asyncio.Task[Any]]", arrived: list[int]
) -> None:
    """Wait until each message that was sent has come; those of receives that were cancelled are received here."""
    patience = asyncio.get_running_loop().time() + PATIENCE
    while True:
        await asyncio.wait([*sends, *receives], timeout=LITTLE)
        ended = [each for each in sends if each.done()]
        sent = {each.result() for each in ended if not each.cancelled() and each.exception() is None}
        if len(ended) == len(sends) and sent <= set(arrived):
            break
        if asyncio.get_running_loop().time() > patience:
            raise Wrong(f"lost message: {sorted(sent)} were sent, {sorted(arrived)} came")
        if all(each.done() for each in receives):
            with suppress(TimeoutError):
                found = await asyncio.wait_for(_wait_or_cancel(pair.a.trecv(tag=TAG)), LITTLE)
                arrived.append(number_of(found.data))
    # Those of messages whose sends were cancelled.
    for task in receives:
        task.cancel()


def exchange(target: str, into: bool, stage: Stage) -> None:
    """An exchange by tasks, within a loop of its own."""
    pair = _open(target)
    try:
        stage.board.arm()
        asyncio.run(_exchange(stage, pair, into))
        stage.board.disarm()
        send_fresh(pair)
    except BaseException:
        stage.board.disarm()
        # What has not left would be told in place of the verdict.
        with suppress(ofipy.FabricError):
            pair.close()
        raise
    pair.close()


def _open(target: str) -> Pair:
    """A pair over ``provider`` or ``provider:domain``."""
    provider, _, name = target.partition(":")
    if not name:
        return Pair(target)
    lib.ofp_param_set(b"RDMFAKE_MOVE_TIME", b"200")  # as a device, whose moves end later
    pair = Pair.__new__(Pair)
    info = next(each for each in ofipy.getinfo(provider=provider) if each.domain == name)
    pair.target = target
    # The loop alone makes progress for the first one; the other one goes on by itself, as a peer elsewhere does.
    first, second = (ofipy.Fabric(info).domain(progress=each) for each in ("manual", "auto"))
    pair._domains = [first, second]
    pair.a, pair.b = first.endpoint().enable(), second.endpoint().enable()
    pair.to_b, pair.to_a = pair.a.insert(pair.b.address), pair.b.insert(pair.a.address)
    return pair


def list_programs() -> list[Program]:
    """Receives of both kinds over each target."""
    for target in TARGETS:
        warm(target.partition(":")[0])
    cases: list[tuple[str, Callable[[str, Stage], None]]] = [
        ("receive", lambda target, stage: exchange(target, False, stage)),
        ("receive-into", lambda target, stage: exchange(target, True, stage)),
    ]
    return [
        Program(
            f"tasks/{target.replace(':', '-')}/{name}",
            Kind.AWAIT | Kind.CALL,
            partial(run, target),
            has_endless_naps=True,
        )
        for target in TARGETS
        for name, run in cases
    ]
