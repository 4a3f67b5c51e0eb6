# SPDX-License-Identifier: BSD-3-Clause
"""Waiting in a storm: whoever is interrupted asks again, and gets what there is to get, once."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

from numbered import canary, is_untouched, number_of
from pair import PATIENCE
from storm import INTERRUPTED
from storm_cases import TAG, Rounds, Scene, case, send
from storm_receives import posted_are

import ofipy


def send_later(scene: Scene, numbers: list[int], size: int) -> Any:
    """Messages that come while somebody waits; they have left when the future is done."""
    return scene.later(
        lambda: ofipy.wait_all([send(scene, number, size) for number in numbers], timeout=PATIENCE)
    )


def waits(name: str, wait: Callable[[ofipy.Request], bool]) -> None:
    """Enter a way of waiting, which says whether the request has finished."""

    @case(name)
    def rounds(scene: Scene) -> Rounds:
        while True:
            number, size = scene.new()
            buffer = canary(size)
            request = (
                scene.a.trecv(tag=TAG) if scene.random.random() < 0.5 else scene.a.trecv_into(buffer, tag=TAG)
            )
            sending = send_later(scene, [number], size)
            while not scene.storm.until_done(lambda: wait(request)):  # noqa: B023
                pass
            result = request.wait()
            assert request.wait() is result
            data = result.data if isinstance(result, ofipy.Message) else buffer
            assert number_of(data) == number
            sending.result(PATIENCE)
            yield


def timed(request: ofipy.Request) -> bool:
    try:
        request.wait(timeout=0.0005)
    except ofipy.TimedOut:
        return False
    return True


def without_error(request: ofipy.Request) -> bool:
    error = request.exception()
    if error is not None:
        raise error
    return request.done


waits("wait", lambda request: request.wait() is not None)
waits("wait-timeout", timed)
waits("test", lambda request: request.test())
waits("done", lambda request: request.done)
waits("exception", without_error)


@case("cancel")
def cancel(scene: Scene) -> Rounds:
    """A receive that was told to end has ended, or has its message."""
    while True:
        number, size = scene.new()
        buffer = canary(size)
        request = (
            scene.a.trecv(tag=TAG) if scene.random.random() < 0.5 else scene.a.trecv_into(buffer, tag=TAG)
        )
        sending = send_later(scene, [number], size)
        scene.storm.until_done(request.cancel)
        try:
            result = request.wait(timeout=PATIENCE)
            data = result.data if isinstance(result, ofipy.Message) else buffer
        except ofipy.Canceled:
            assert is_untouched(buffer)
            data = scene.a.trecv(tag=TAG).wait(timeout=PATIENCE).data
        assert number_of(data) == number
        sending.result(PATIENCE)
        yield


@case("wait_all")
def wait_all(scene: Scene) -> Rounds:
    """All results, in the order of the requests."""
    while True:
        size = scene.new()[1]
        numbers = [next(scene.numbers) for _ in range(4)]
        buffers = [canary(size) for _ in numbers]
        requests: list[ofipy.Request] = [scene.a.trecv_into(buffer, tag=TAG) for buffer in buffers]
        sending = send_later(scene, numbers, size)
        assert scene.storm.until_done(lambda: ofipy.wait_all(requests)) == requests  # noqa: B023
        assert [number_of(buffer) for buffer in buffers] == numbers
        sending.result(PATIENCE)
        yield


@case("wait_any")
def wait_any(scene: Scene) -> Rounds:
    """Each of them, once it has finished: matched in the order of the messages, complete in any."""
    while True:
        size = scene.new()[1]
        numbers = [next(scene.numbers) for _ in range(4)]
        waiting: dict[ofipy.Request, int] = {scene.a.trecv(tag=TAG): number for number in numbers}
        sending = send_later(scene, numbers, size)
        while waiting:
            first = scene.storm.until_done(lambda: ofipy.wait_any(list(waiting)))  # noqa: B023
            assert number_of(first.wait(timeout=PATIENCE).data) == waiting.pop(first)
        sending.result(PATIENCE)
        yield


# --------------------------------------------------------------------------------------------------------- asyncio


def run(scene: Scene, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """What a task returns, or INTERRUPTED.

    A task that ended with an exception refers to its frames, and they to it: a request among them gives its message
    back when the collector has found it.
    """
    result = run_task(scene, loop, work)
    if result is INTERRUPTED:
        gc.collect()
    return result


def run_task(scene: Scene, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """What a task returns; INTERRUPTED when it was cancelled by Ctrl-C, as :func:`asyncio.run` does it.

    An exception that comes up anywhere would break the loop itself.
    """
    task = loop.create_task(work)

    def strike() -> None:
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)

    try:
        return scene.storm.attempt(lambda: loop.run_until_complete(task), strike)
    except asyncio.CancelledError:
        return INTERRUPTED


@case("await")
def await_request(scene: Scene) -> Rounds:
    """A task that is left and cancelled takes no message with it."""
    loop = asyncio.new_event_loop()

    async def result(request: ofipy.Request) -> Any:
        return await request

    try:
        while True:
            number, size = scene.new()
            buffer = canary(size)
            into = scene.random.random() < 0.5
            request = scene.a.trecv_into(buffer, tag=TAG) if into else scene.a.trecv(tag=TAG)
            sending = send_later(scene, [number], size)
            if run(scene, loop, result(request)) is INTERRUPTED:
                request.cancel()
            try:
                answer = request.wait(timeout=PATIENCE)
                data = buffer if into else answer.data
            except ofipy.Canceled:
                assert is_untouched(buffer)
                data = scene.a.trecv(tag=TAG).wait(timeout=PATIENCE).data
            assert number_of(data) == number
            sending.result(PATIENCE)
            posted_are(scene, 0)
            yield
    finally:
        loop.close()


@case("messages")
def messages(scene: Scene) -> Rounds:
    """Messages that nobody has got yet come out of the next loop, in order."""
    loop = asyncio.new_event_loop()
    came: list[ofipy.Message] = []

    async def take(count: int) -> None:
        async for message in scene.a.messages(tag=TAG):
            # At once: what follows may be interrupted too.
            came.append(message)
            if len(came) >= count:
                return

    try:
        while True:
            came.clear()
            size = scene.new()[1]
            numbers = [next(scene.numbers) for _ in range(4)]
            sending = send_later(scene, numbers, size)
            run(scene, loop, take(len(numbers)))
            while len(came) < len(numbers):
                came.append(scene.a.trecv(tag=TAG).wait(timeout=PATIENCE))
            got = [number_of(message.data) for message in came]
            assert got == numbers, f"{got} instead of {numbers}"
            sending.result(PATIENCE)
            loop.run_until_complete(loop.shutdown_asyncgens())
            posted_are(scene, 0)
            yield
    finally:
        loop.close()
