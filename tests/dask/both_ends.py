# SPDX-License-Identifier: BSD-3-Clause
"""Both ends of a connection, within one loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Any

from distributed.comm import CommClosedError, connect, listen

ANY_PORT = "ofi://127.0.0.1:0"


def run(test: Awaitable[None]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(45):
            await test

    asyncio.run(whole())


@asynccontextmanager
async def pair(**options: Any) -> AsyncIterator[tuple[Any, Any, Any]]:
    """Both ends of a connection, and the listener."""
    accepted: asyncio.Queue[Any] = asyncio.Queue()
    async with listen(ANY_PORT, accepted.put, **options) as listener:
        here = await connect(listener.contact_address, **options)
        there = await accepted.get()
        try:
            yield here, there, listener
        finally:
            here.abort()
            there.abort()


async def echo(comm: Any) -> None:
    while not comm.closed():
        with suppress(CommClosedError):
            await comm.write(await comm.read())
