# SPDX-License-Identifier: BSD-3-Clause
"""The tcp provider between hosts: network namespaces, each with a worker process, and faults of the network.

They need root, iproute2 and iptables; without these they are skipped, and with ``CI=true`` they fail.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hosts import Host, Network, obstacle
from nodes import Node


@pytest.fixture(scope="session")
def privileged() -> None:
    reason = obstacle()
    if reason is not None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"network namespaces: {reason}")


@pytest.fixture
def network(privileged: None) -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


@pytest.fixture
def start(network: Network) -> Iterator[Callable[..., Node]]:
    nodes: list[Node] = []

    def start(host: Host, **variables: object) -> Node:
        nodes.append(Node(host, **variables))
        return nodes[-1]

    yield start
    for node in nodes:
        node.end()
