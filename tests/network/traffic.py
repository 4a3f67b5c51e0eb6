# SPDX-License-Identifier: BSD-3-Clause
"""What two nodes have to say to each other, and that all of it has come."""

from __future__ import annotations

from nodes import Node

# Small ones and large ones side by side, by tag.
LENGTHS = {1: [1, 8, 100, 5000, 60_000], 2: [1 << 20]}
ENOUGH = {1: 20, 2: 4}


def begin(nodes: list[Node], addresses: list[str]) -> None:
    """Messages both ways at once, small ones beside large ones, until :func:`finish`."""
    for tag, mixture in LENGTHS.items():
        for node, address in zip(nodes, reversed(addresses), strict=True):
            node.sink(address=address, tag=tag, lengths=mixture)
            node.source(address=address, tag=tag, lengths=mixture)


def finish(nodes: list[Node]) -> None:
    """Wait until enough more have come, and stop: all of them have come, in order, as they were sent."""
    for node in nodes:
        for tag, enough in ENOUGH.items():
            assert node.wait_for(tag=tag, count=enough, seconds=30) >= enough
    for tag in LENGTHS:
        for node in nodes:
            node.stop(tag=tag)
    for tag in LENGTHS:
        sent = [node.source_result(tag=tag) for node in nodes]
        received = [node.sink_result(tag=tag) for node in reversed(nodes)]
        for source, sink in zip(sent, received, strict=True):
            assert source["failures"] == sink["failures"] == []
            # The source counts its last, empty message.
            assert source["sent"] == sink["received"] + 1


def mixed_messages(nodes: list[Node], seed: int) -> None:
    """Messages of many lengths, with and without tags, both ways at once; the nodes have met."""
    calls = [node.begin("messages", seed=each) for node, each in zip(nodes, (seed, 1000 - seed), strict=True)]
    assert [call.result() for call in calls] == [20, 20]


def remote_memory(nodes: list[Node]) -> None:
    """Reads, writes and atomics, both ways at once; the nodes have met."""
    regions = [node.offer() for node in nodes]
    calls = [
        node.begin("remote", remote=region) for node, region in zip(nodes, reversed(regions), strict=True)
    ]
    counted = [sum(range(n)) for n in range(10)]
    assert [call.result() for call in calls] == [[*counted, 0]] * 2
    assert [node.memory() for node in nodes] == [[1, 45, 10]] * 2


def meet(nodes: list[Node], addresses: list[str]) -> None:
    for node, address in zip(nodes, reversed(addresses), strict=True):
        node.meet(address=address)
