# SPDX-License-Identifier: BSD-3-Clause
"""An event loop's own messages: Unix sockets, one connection a task, by protocols, the fastest of its ways."""

import asyncio
import importlib
import platform
import secrets
import socket
from importlib.metadata import version
from typing import Literal, cast

from fabtests.compare.contender import Contender
from fabtests.compare.ways.messages import TASKS

__all__ = ["Loop"]


class Messages(asyncio.Protocol):
    """Counts the bytes that came, and wakes the task that waits for them."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.there = 0
        self.waiting: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what to write to."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by type

    def data_received(self, data: bytes) -> None:
        """Some came."""
        self.there += len(data)
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)

    async def receive(self, size: int) -> None:
        """Return when a message has come."""
        while self.there < size:
            self.waiting = asyncio.get_running_loop().create_future()
            await self.waiting
        self.there -= size


class Loop(Contender):
    """Tasks that write and wait.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    loop : str
        Whose loop: ``asyncio`` or ``uvloop``.
    """

    def __init__(self, first: bool, *, loop: Literal["asyncio", "uvloop"]) -> None:
        super().__init__(first)
        self._kind = loop
        self._runner = asyncio.Runner(loop_factory=importlib.import_module(loop).new_event_loop)
        self._listener: socket.socket | None = None
        self._protocols: list[Messages] = []
        self._message, self._tasks = b"", 1

    def version(self) -> str:
        """That of the loop."""
        return platform.python_version() if self._kind == "asyncio" else version(self._kind)

    def offer(self) -> str | None:
        """The first side listens."""
        if not self.first:
            return None
        self._listener = socket.socket(socket.AF_UNIX)
        name = f"fabtests-{secrets.token_hex(16)}"
        self._listener.bind("\0" + name)
        self._listener.listen(TASKS)
        return name

    def meet(self, other: str | None) -> None:
        """A connection for each task."""
        for _ in range(TASKS):
            if self._listener is not None:
                connection, _ = self._listener.accept()
            else:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(f"\0{other}")
            self._protocols.append(self._runner.run(self._connect(connection)))
        if self._listener is not None:
            self._listener.close()

    async def _connect(self, connection: socket.socket) -> Messages:
        _, protocol = await asyncio.get_running_loop().create_unix_connection(Messages, sock=connection)
        return protocol

    def prepare(self, size: int, mode: str) -> None:
        """The mode is the number of tasks."""
        super().prepare(size, mode)
        self._message, self._tasks = bytes(self.outgoing), int(mode)

    def exchange(self, count: int) -> None:
        """Ping-pong of each task."""
        self._runner.run(self._exchange_all(count))

    async def _exchange_all(self, count: int) -> None:
        if self._tasks == 1:
            await self._exchange_one(self._protocols[0], count)
            return
        async with asyncio.TaskGroup() as group:
            for protocol in self._protocols[: self._tasks]:
                group.create_task(self._exchange_one(protocol, count))

    async def _exchange_one(self, protocol: Messages, count: int) -> None:
        write, message, size = protocol.transport.write, self._message, len(self._message)
        for _ in range(count):
            if self.first:
                write(message)
            await protocol.receive(size)
            if not self.first:
                write(message)

    def close(self) -> None:
        """Close the connections."""
        for protocol in self._protocols:
            protocol.transport.close()
        self._runner.close()
