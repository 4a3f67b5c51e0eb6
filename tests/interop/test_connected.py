# SPDX-License-Identifier: BSD-3-Clause
"""Connected endpoints: our ``tcp`` and libfabric's, which the bridge reaches, each as the one that listens."""

import asyncio
from collections.abc import Callable

import connected
import pytest
from connected import info_of

import ofipy

ROLES = [("tcp", "ofi:tcp"), ("ofi:tcp", "tcp")]

pytestmark = pytest.mark.parametrize(("there", "here"), ROLES, ids="{}".format)


@pytest.mark.parametrize("scene", [connected.say_private_data, connected.be_refused])
def test_requests(there: str, here: str, scene: Callable[[ofipy.Info, ofipy.Info], None]) -> None:
    scene(info_of(there, "lo"), info_of(here, "lo"))


@pytest.mark.parametrize(
    "scene",
    [connected.exchange_messages, connected.say_data, connected.reach_memory, connected.shut_down],
)
def test_connections(there: str, here: str, scene: Callable[[connected.Ends], None]) -> None:
    with connected.connected(info_of(there, "lo"), info_of(here, "lo")) as ends:
        scene(ends)


def test_many_connections_of_one_domain_in_an_event_loop(there: str, here: str) -> None:
    """More than the ten ways that the kernel allows from a socket to who sleeps."""
    with connected.listening(info_of(there, "lo"), info_of(here, "lo")) as (listener, first):
        clients = [first, *(first.domain.endpoint().enable() for _ in range(19))]

        async def ask(client: ofipy.Endpoint) -> bytes:
            await client.connect(connected.raw_address(listener))
            await client.send(b"ping")
            room = bytearray(4)
            await client.recv_into(room)
            return bytes(room)

        servers: list[ofipy.Endpoint] = []

        async def serve() -> None:
            servers.extend([(await listener.next()).accept() for _ in clients])
            rooms = [bytearray(4) for _ in servers]
            for server, room in zip(servers, rooms, strict=True):
                await server.recv_into(room)
                await server.send(room[::-1])

        async def main() -> list[bytes]:
            async with asyncio.timeout(connected.TIMEOUT):
                return (await asyncio.gather(*map(ask, clients), serve()))[:-1]

        assert asyncio.run(main()) == [b"gnip"] * 20
