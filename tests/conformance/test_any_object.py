# SPDX-License-Identifier: BSD-3-Clause
"""A receive gives the object that was sent, by whichever way its program takes the result.

The interpreter treats some objects in a way of their own where one becomes the value of an exception: a tuple, None, an
exception.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from any_object import objects, same
from hypothesis import HealthCheck, given, settings

import ofipy

pytestmark = pytest.mark.connected

TIMEOUT = 30
SETTINGS = settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


async def by_await(receive: ofipy.ObjectRequest) -> Any:
    return await receive


async def by_task(receive: ofipy.ObjectRequest) -> Any:
    return await asyncio.create_task(by_await(receive))


async def by_future(receive: ofipy.ObjectRequest) -> Any:
    return await asyncio.ensure_future(receive)


async def by_wait_for(receive: ofipy.ObjectRequest) -> Any:
    return await asyncio.wait_for(receive, TIMEOUT)


async def by_gather(receive: ofipy.ObjectRequest) -> Any:
    return (await asyncio.gather(receive, asyncio.sleep(0)))[0]


async def by_callback(receive: ofipy.ObjectRequest) -> Any:
    loop = asyncio.get_running_loop()
    called: asyncio.Future[Any] = loop.create_future()
    asyncio.ensure_future(receive).add_done_callback(lambda task: called.set_result([task.result()]))
    return (await called)[0]


async def by_executor(receive: ofipy.ObjectRequest) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, receive.wait, TIMEOUT)


async def by_wait(receive: ofipy.ObjectRequest) -> Any:
    return receive.wait(TIMEOUT)


async def by_wait_all(receive: ofipy.ObjectRequest) -> Any:
    return ofipy.wait_all([receive], TIMEOUT)[0]


async def by_next(receive: ofipy.ObjectRequest) -> Any:
    """As `yield from` does, and `await` from Python 3.12 on."""
    return await Steps(receive, next)


async def by_send(receive: ofipy.ObjectRequest) -> Any:
    """As a coroutine does that is written in Python, or in Cython."""
    return await Steps(receive, lambda waiter: waiter.send(None))


class Steps:
    """Awaits by calls that anybody may make, and takes the result out of the exception."""

    def __init__(self, receive: ofipy.ObjectRequest, step: Callable[[Any], Any]) -> None:
        self._receive, self._step = receive, step

    def __await__(self) -> Any:
        waiter = self._receive.__await__()
        while True:
            try:
                future = self._step(waiter)
            except StopIteration as stop:
                return stop.value
            yield future


EVERY_WAY = [
    by_await,
    by_task,
    by_future,
    by_wait_for,
    by_gather,
    by_callback,
    by_executor,
    by_wait,
    by_wait_all,
    by_next,
    by_send,
]


@pytest.mark.parametrize("early", [True, False], ids=["asked before it comes", "asked afterwards"])
def test_comes_out_as_it_went_in(ep: ofipy.Endpoint, me: ofipy.Peer, early: bool) -> None:
    async def each_way(value: Any) -> None:
        for way in EVERY_WAY:
            receive = ep.recv_obj()
            if early and way not in (by_wait, by_wait_all):
                asked: Awaitable[Any] = asyncio.ensure_future(boxed(way, receive))
                await asyncio.sleep(0)
                await ep.send_obj(value, me)
            else:
                await ep.send_obj(value, me)
                asked = boxed(way, receive)
            (got,) = await asked
            assert same(got, value), f"{way.__name__}: {value!r} came out as {got!r}"

    async def boxed(
        way: Callable[[ofipy.ObjectRequest], Awaitable[Any]], receive: ofipy.ObjectRequest
    ) -> Any:
        return [await way(receive)]

    with asyncio.Runner() as runner:

        @given(value=objects())
        @SETTINGS
        def check(value: Any) -> None:
            runner.run(asyncio.wait_for(each_way(value), TIMEOUT))

        check()
