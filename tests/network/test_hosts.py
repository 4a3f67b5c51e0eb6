# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts on a network without faults, and on one that loses packets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import traffic
from hosts import Network
from nodes import Node

Start = Callable[..., Node]
FAMILIES = pytest.mark.parametrize("family", ["", "-ipv6"], ids=["ipv4", "ipv6"])


@FAMILIES
@pytest.mark.parametrize("extension", ["yes", "no"])
def test_everything_between_two_hosts(network: Network, start: Start, family: str, extension: str) -> None:
    hosts = [network.host() for _ in range(2)]
    for host in hosts:
        network.wire(host)
    nodes = [start(host, TCP_EXTENSION=extension) for host in hosts]
    traffic.meet(nodes, [node.open(domain=f"eth0{family}") for node in nodes])
    traffic.mixed_messages(nodes, seed=3)
    traffic.mixed_messages(nodes, seed=40)
    if extension == "yes":
        traffic.remote_memory(nodes)


@FAMILIES
def test_lost_packets(network: Network, start: Start, family: str) -> None:
    hosts = [network.host() for _ in range(2)]
    wires = [network.wire(host) for host in hosts]
    for wire in wires:
        wire.lose(0.05)
    # Long enough for TCP to get through: the timeout is another test's.
    nodes = [start(host, TCP_USER_TIMEOUT=30) for host in hosts]
    traffic.begin(nodes, [node.open(domain=f"eth0{family}") for node in nodes])
    traffic.finish(nodes)
    assert all(wire.dropped() > 0 for wire in wires)
