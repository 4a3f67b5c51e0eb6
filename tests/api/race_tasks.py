# SPDX-License-Identifier: BSD-3-Clause
"""Several tasks, or a task and a thread, at one request: each gets the same; who is cancelled takes nothing away."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from numbered import canary, number_of
from pair import PATIENCE
from race_stage import TAG, Stage, scenario

import ofipy

SIZE = 4096

Turn = Callable[[Stage, ofipy.Request, int], Coroutine[Any, Any, Any]]


def tasks(name: str) -> Callable[[Turn], Turn]:
    """Enter a turn that returns what the request brought; it says itself when the message is to come."""

    def enter(turn: Turn) -> Turn:
        @scenario(name)
        def whole(stage: Stage) -> None:
            number, buffer = stage.new(), canary(SIZE)
            any_size = stage.random.random() < 0.5
            request = stage.ep.trecv(tag=TAG) if any_size else stage.ep.trecv_into(buffer, tag=TAG)
            result = asyncio.run(asyncio.wait_for(turn(stage, request, number), 3 * PATIENCE))
            assert result is request.wait(timeout=PATIENCE)
            assert number_of(result.data if any_size else buffer) == number

        return turn

    return enter


async def awaits(request: ofipy.Request) -> Any:
    return await request


def later(stage: Stage, number: int) -> None:
    """The message comes in a moment."""
    asyncio.get_running_loop().call_later(stage.random.uniform(0, 0.002), stage.send, number, SIZE)


@tasks("await-await")
async def two(stage: Stage, request: ofipy.Request, number: int) -> Any:
    both = [asyncio.create_task(awaits(request)) for _ in range(2)]
    later(stage, number)
    first, second = await asyncio.wait_for(asyncio.gather(*both), PATIENCE)
    assert first is second
    return first


@tasks("await-gather")
async def gather(stage: Stage, request: ofipy.Request, number: int) -> Any:
    later(stage, number)
    first, second = await asyncio.wait_for(asyncio.gather(request, awaits(request)), PATIENCE)
    assert first is second
    return first


@tasks("await-thread")
async def thread(stage: Stage, request: ofipy.Request, number: int) -> Any:
    waiting = asyncio.create_task(awaits(request))
    blocked = asyncio.create_task(asyncio.to_thread(request.wait, timeout=PATIENCE))
    later(stage, number)
    first, second = await asyncio.wait_for(asyncio.gather(waiting, blocked), PATIENCE)
    assert first is second
    return first


@tasks("await-one-cancelled")
async def one_cancelled(stage: Stage, request: ofipy.Request, number: int) -> Any:
    """Cancelling one of two tasks leaves the other what it waits for."""
    given_up, waiting = (asyncio.create_task(awaits(request)) for _ in range(2))
    await asyncio.sleep(stage.random.uniform(0, 0.001))
    given_up.cancel()
    later(stage, number)
    result = await asyncio.wait_for(waiting, PATIENCE)
    try:
        assert await given_up is result
    except asyncio.CancelledError:
        assert given_up.cancelled()
    return result


@scenario("await-all-cancelled")
def all_cancelled(stage: Stage) -> None:
    """When nobody is left the receive is cancelled exactly, and its message goes to the next."""
    number, buffer = stage.new(), canary(SIZE)
    any_size = stage.random.random() < 0.5

    async def give_up(request: ofipy.Request) -> None:
        both = [asyncio.create_task(awaits(request)) for _ in range(2)]
        later(stage, number)
        await asyncio.sleep(stage.random.uniform(0, 0.003))
        for task in both:
            task.cancel()
        await asyncio.wait(both, timeout=PATIENCE)
        assert all(task.done() for task in both)
        # The one that sends, when it has not yet.
        await asyncio.sleep(0.003)

    request = stage.ep.trecv(tag=TAG) if any_size else stage.ep.trecv_into(buffer, tag=TAG)
    asyncio.run(give_up(request))
    try:
        result = request.wait(timeout=PATIENCE)
    except ofipy.Canceled:
        result, any_size = stage.ep.trecv(tag=TAG).wait(timeout=PATIENCE), True
    assert number_of(result.data if any_size else buffer) == number


@scenario("wait_for")
def wait_for(stage: Stage) -> None:
    """A time-out of asyncio's cancels the receive, exactly; a request is no coroutine."""
    number = stage.new()
    request = stage.ep.trecv_into(bytearray(SIZE), tag=TAG)

    async def times_out() -> None:
        try:
            await asyncio.wait_for(request, 0.002)
        except TimeoutError:
            pass
        else:
            raise AssertionError("nobody has sent yet")
        try:
            asyncio.get_running_loop().create_task(request)  # type: ignore[arg-type]
        except TypeError:
            pass
        else:
            raise AssertionError("asyncio.create_task() took it")

    asyncio.run(times_out())
    stage.send(number, SIZE)
    assert isinstance(request.exception(), ofipy.Canceled)
    assert number_of(stage.ep.trecv(tag=TAG).wait(timeout=PATIENCE).data) == number
