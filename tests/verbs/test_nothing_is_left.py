# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints that come and go leave nothing at the device, nor descriptors, over each type that there is."""

import json
import subprocess
from collections.abc import Callable

import pytest

import ofipy
from ofipy.pingpong.leftovers import count_descriptors

TIMEOUT = 30
CYCLES = 100


def held() -> dict[str, int]:
    """What the kernel counts: queue pairs, completion queues, regions, protection domains, ids; and descriptors."""
    listing = subprocess.run(["rdma", "-j", "resource", "show"], capture_output=True, text=True, check=True)
    counts = {name: value for name, value in json.loads(listing.stdout)[0].items() if isinstance(value, int)}
    return counts | {"descriptors": count_descriptors()}


def connected(domain: ofipy.Domain) -> None:
    """Four pairs."""
    listener = domain.passive_endpoint()
    listener.listen()
    clients = [domain.endpoint().enable() for _ in range(4)]
    connections = [client.connect(listener.address) for client in clients]
    servers = [listener.wait(timeout=TIMEOUT).accept() for _ in clients]
    for connection in connections:
        connection.wait(timeout=TIMEOUT)
    # Under way as they close, with memory that is registered for it.
    servers[0].recv_into(bytearray(100_000))
    clients[0].send(b"x" * 100_000)
    for each in (*clients, *servers, listener):
        each.close()


def unconnected(domain: ofipy.Domain) -> None:
    """Eight, each with a peer."""
    endpoints = [domain.endpoint().enable() for _ in range(8)]
    for endpoint, other in zip(endpoints, (*endpoints[1:], endpoints[0]), strict=True):
        endpoint.send(b"x" * 1000, endpoint.insert(other.address))
    # Some are for an endpoint that is closed by then.
    for endpoint in endpoints:
        endpoint.close(linger=0)


@pytest.mark.parametrize(
    ("kind", "cycle"), [("msg", connected), ("dgram", unconnected), ("rdm", unconnected)]
)
def test_endpoints_that_come_and_go(kind: str, cycle: Callable[[ofipy.Domain], None]) -> None:
    fabric = ofipy.Fabric(ofipy.getinfo(provider="verbs", ep_type=kind)[0])
    domain = fabric.domain(progress="auto")
    # What stays for the domain's life is there after the first.
    cycle(domain)
    domain.close()
    domain = fabric.domain(progress="auto")
    before = held()
    for _ in range(CYCLES):
        cycle(domain)
    domain.close()
    domain = fabric.domain(progress="auto")
    assert held() == before
    fabric.close()
