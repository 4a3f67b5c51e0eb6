# SPDX-License-Identifier: BSD-3-Clause
"""Listeners and connections that are awaited, and waited for in a thread."""

import asyncio
import threading

import pytest
from connected import TIMEOUT, OpenDomain

import ofipy

pytestmark = [pytest.mark.needs("connections"), pytest.mark.untagged]


async def serve_and_ask(listener: ofipy.PassiveEndpoint, clients: list[ofipy.Endpoint]) -> list[bytes]:
    async def serve() -> None:
        async for request in listener:
            if request.data == b"0":
                request.reject(data=b"not you")
                continue
            server = request.accept(data=b"welcome " + request.data)
            room = bytearray(11)
            got = await server.recv_into(room)
            await server.send(room.upper(), got.source)
            await server.shutdown()
            server.close()

    async def ask(number: int, client: ofipy.Endpoint) -> bytes:
        try:
            answer = await client.connect(listener.address, data=b"%d" % number)
        except ofipy.ConnectionRefused as error:
            return error.data
        await client.send(b"from client")
        room = bytearray(11)
        await client.recv_into(room)
        return bytes(answer + b": " + room)

    serving = asyncio.create_task(serve())
    answers = await asyncio.gather(*(ask(number, client) for number, client in enumerate(clients)))
    serving.cancel()
    return list(answers)


@pytest.mark.parametrize("progress", ["auto", "manual"])
def test_asyncio(open_domain: OpenDomain, progress: str) -> None:
    # One domain for all: one loop drives it whatever it waits for.
    domain = open_domain(progress)
    listener = domain.passive_endpoint()
    listener.listen()
    clients = [domain.endpoint().enable() for _ in range(4)]

    async def main() -> list[bytes]:
        async with asyncio.timeout(TIMEOUT):
            return await serve_and_ask(listener, clients)

    assert asyncio.run(main()) == [b"not you", *(b"welcome %d: FROM CLIENT" % number for number in (1, 2, 3))]


def test_cancelling_an_awaited_request_loses_none(
    listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint
) -> None:
    async def main() -> bytes:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await listener.next()
        waiting = [asyncio.create_task(listener.next()) for _ in range(2)]
        await asyncio.sleep(0)
        connection = client.connect(listener.address, data=b"found")
        done, _ = await asyncio.wait(waiting, timeout=TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        request = done.pop().result()
        request.accept()
        await connection
        listener.close()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert sum(isinstance(outcome, ofipy.Closed) for outcome in outcomes) == 1
        return request.data

    assert asyncio.run(main()) == b"found"


def test_waiting_in_a_thread_ends_with_the_listener(listener: ofipy.PassiveEndpoint) -> None:
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            listener.wait()
        except ofipy.FabricError as error:
            failures.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    listener.fabric.close()
    waiter.join(TIMEOUT)
    assert not waiter.is_alive()
    assert isinstance(failures[0], ofipy.Canceled | ofipy.Closed)
