# SPDX-License-Identifier: BSD-3-Clause
"""Groups between hosts, when the network is cut: each side thinks that the other one is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hosts import Network
from nodes import Node, RemoteError


def together(nodes: list[Node], name: str, arguments: list[dict[str, Any]] | None = None) -> list[Any]:
    """What each of them answers, or the error that it has; all do it at the same time."""
    begun = [
        node.begin(name, **each) for node, each in zip(nodes, arguments or [{}] * len(nodes), strict=True)
    ]
    return [future.exception() or future.result() for future in begun]


@pytest.mark.parametrize("provider", ["tcp", "link"])
@pytest.mark.parametrize("alone", [0, 2], ids=["the-coordinator", "another"])
def test_only_the_majority_of_a_partition_decides(
    network: Network, start: Callable[..., Node], provider: str, alone: int
) -> None:
    hosts = [network.host() for _ in range(3)]
    wires = [network.wire(host) for host in hosts]
    nodes = [start(host, INTERFACE="eth0") for host in hosts]
    addresses = [node.open(provider=provider) for node in nodes]
    assert (
        together(nodes, "join", [{"rank": rank, "addresses": addresses} for rank in range(3)]) == [None] * 3
    )
    assert together(nodes, "agree") == [[]] * 3
    wires[alone].cut()
    answers = together(nodes, "agree")
    refused = answers.pop(alone)
    assert answers == [[alone]] * 2
    assert isinstance(refused, RemoteError)
    assert refused.kind == "GroupBroken"
    assert "minority" in str(refused)
    # The cut heals, and the one that was alone stays out.
    wires[alone].heal()
    with pytest.raises(RemoteError, match="minority"):
        nodes[alone].agree()
    majority = [node for rank, node in enumerate(nodes) if rank != alone]
    assert together(majority, "shrink") == [[0, 2], [1, 2]]
