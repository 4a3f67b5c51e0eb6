# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts on a network without faults, and on one that loses packets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hosts import Network
from nodes import Node

Start = Callable[..., Node]
FAMILIES = pytest.mark.parametrize("family", ["", "-ipv6"], ids=["ipv4", "ipv6"])


def pair(
    network: Network, start: Start, family: str = "", **variables: object
) -> tuple[list[Node], list[str]]:
    """Two nodes on hosts of their own, and their addresses."""
    hosts = [network.host() for _ in range(2)]
    for host in hosts:
        network.wire(host)
    nodes = [start(host, **variables) for host in hosts]
    return nodes, [node.open(domain=f"eth0{family}") for node in nodes]


@FAMILIES
@pytest.mark.parametrize("extension", ["yes", "no"])
def test_everything_between_two_hosts(network: Network, start: Start, family: str, extension: str) -> None:
    nodes, addresses = pair(network, start, family, TCP_EXTENSION=extension)
    for node, address in zip(nodes, reversed(addresses), strict=True):
        node.meet(address=address)
    for seeds in ((3, 997), (40, 960)):
        calls = [node.begin("messages", seed=seed) for node, seed in zip(nodes, seeds, strict=True)]
        assert [call.result() for call in calls] == [20, 20]
    if extension == "no":
        return
    regions = [node.offer() for node in nodes]
    calls = [
        node.begin("remote", remote=region) for node, region in zip(nodes, reversed(regions), strict=True)
    ]
    counted = [sum(range(n)) for n in range(10)]
    assert [call.result() for call in calls] == [[*counted, 0]] * 2
    assert [node.memory() for node in nodes] == [[1, 45, 10]] * 2


def exchange(nodes: list[Node], family: str) -> None:
    """Messages both ways at once, small ones beside large ones, until enough have come: all of them, in order."""
    addresses = [node.open(domain=f"eth0{family}") for node in nodes]
    lengths = {1: [1, 8, 100, 5000, 60_000], 2: [1 << 20]}
    for tag, mixture in lengths.items():
        for node, address in zip(nodes, reversed(addresses), strict=True):
            node.sink(address=address, tag=tag, lengths=mixture)
            node.source(address=address, tag=tag, lengths=mixture)
    for node in nodes:
        assert node.wait_for(tag=1, count=20, seconds=30) >= 20
        assert node.wait_for(tag=2, count=4, seconds=30) >= 4
    for tag in lengths:
        for node in nodes:
            node.stop(tag=tag)
    for tag in lengths:
        sent = [node.source_result(tag=tag) for node in nodes]
        received = [node.sink_result(tag=tag) for node in reversed(nodes)]
        for source, sink in zip(sent, received, strict=True):
            assert source["failures"] == sink["failures"] == []
            # The source counts its last, empty message.
            assert source["sent"] == sink["received"] + 1


@FAMILIES
def test_lost_packets(network: Network, start: Start, family: str) -> None:
    hosts = [network.host() for _ in range(2)]
    wires = [network.wire(host) for host in hosts]
    # Long enough for TCP to get through: the timeout is another test's.
    for wire in wires:
        wire.lose(0.05)
    # Long enough for TCP to get through: the timeout is another test's.
    exchange([start(host, TCP_USER_TIMEOUT=30) for host in hosts], family)
    assert all(wire.dropped() > 0 for wire in wires)


@pytest.mark.parametrize(
    "fault",
    ["delay 20ms 10ms", "duplicate 10%", "delay 5ms reorder 25% 50%"],
    ids=["delay", "duplicate", "reorder"],
)
def test_packets_that_come_late_twice_or_in_another_order(network: Network, start: Start, fault: str) -> None:
    hosts = [network.host() for _ in range(2)]
    for wire in [network.wire(host) for host in hosts]:
        wire.disturb(fault)
    exchange([start(host, TCP_USER_TIMEOUT=30) for host in hosts], "")
