# SPDX-License-Identifier: BSD-3-Clause
"""Turns that a loop of asyncio's own cannot schedule: no task is forgotten."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import ofipy
from ofipy._completion.aio import Poller

TIMEOUT = 20


@pytest.fixture
def ep() -> Iterator[ofipy.Endpoint]:
    with ofipy.open(provider="shm", progress="auto") as ep:
        yield ep


def fail_first(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> list[BaseException]:
    """Let the first call that schedules a turn raise; the result is empty until then."""
    whole: Callable[[Poller], None] = Poller._schedule
    raised: list[BaseException] = []

    def schedule(poller: Poller) -> None:
        if not raised:
            raised.append(error)
            raise error
        whole(poller)

    monkeypatch.setattr(Poller, "_schedule", schedule)
    return raised


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, TIMEOUT))


def test_one_for_which_there_was_no_memory_is_scheduled_again(
    ep: ofipy.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = fail_first(monkeypatch, MemoryError())

    async def main() -> None:
        waiting = asyncio.ensure_future(result_of(ep.trecv(tag=1)))
        await asyncio.sleep(0)
        await ep.tsend(b"after all", ep.insert(ep.address), tag=1)
        assert bytes(await waiting) == b"after all"

    run(main())
    assert raised


def test_an_await_whose_turn_cannot_be_scheduled_raises(
    ep: ofipy.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop of asyncio's own would sleep without it, whatever arrives."""
    raised = fail_first(monkeypatch, RuntimeError("not now"))

    async def main() -> None:
        request = ep.trecv(tag=1)
        with pytest.raises(RuntimeError, match="not now"):
            await request
        await ep.tsend(b"after all", ep.insert(ep.address), tag=1)
        assert bytes(await request) == b"after all"

    run(main())
    assert raised


async def result_of(request: ofipy.Request) -> object:
    return await request
