# SPDX-License-Identifier: BSD-3-Clause
"""The graph: nodes with ids that are the same wherever they come from, and edges with what they carry."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Edge", "EdgeKind", "Graph", "Node", "NodeKind"]


class NodeKind(enum.StrEnum):
    """What a node is."""

    HOST = "host"
    NUMA = "numa"
    BRIDGE = "bridge"
    NIC = "nic"
    PORT = "port"
    GPU = "gpu"
    SWITCH = "switch"


class EdgeKind(enum.StrEnum):
    """What an edge is."""

    CONTAINS = "contains"
    """The first is where the second is: a host and its node, a NIC and its port."""
    PCI = "pci"
    """A PCI Express link, the end nearer to the root first."""
    LINK = "link"
    """A cable."""


@dataclass(frozen=True, slots=True)
class Node:
    """One thing."""

    id: str
    """Unique among all hosts: ``node1/mlx5_0/1``, or ``switch 0x…``."""
    kind: NodeKind
    name: str
    guid: str | None = None
    """Of a NIC, a port or a switch, as 16 hexadecimal digits: the fabric knows them by it."""
    detail: str = ""
    """A few words: state and rate of a port, processors of a node."""
    processors: str = ""
    """Of a NUMA node, and those near a NIC: ``0-15``."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What two nodes have to do with each other."""

    first: str
    """Id of a node."""
    second: str
    kind: EdgeKind
    width: int | None = None
    """Lanes."""
    speed: str | None = None
    """Of each lane: ``16 GT/s``, ``HDR``."""
    gigabits: float | None = None
    """What it carries, Gb/s."""
    degraded: bool = False
    """It carries less than both its ends can."""
    detail: str = ""
    """The numbers of the ports at both ends of a cable."""


@dataclass(slots=True)
class Graph:
    """Nodes by id, and edges, each once."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], Edge] = field(default_factory=dict)

    def add(self, node: Node) -> str:
        """Add a node; one that is there already keeps what the new one does not know. Returns its id."""
        old = self.nodes.get(node.id)
        if old is not None:
            node = replace(
                node,
                guid=node.guid or old.guid,
                detail=node.detail or old.detail,
                processors=node.processors or old.processors,
            )
        self.nodes[node.id] = node
        return node.id

    def connect(self, edge: Edge) -> None:
        """Add an edge that is not there yet. A cable has no direction: whoever tells of it first is its first end."""
        back = (edge.second, edge.first, swap(edge.detail))
        if edge.kind is EdgeKind.LINK and back in self.edges:
            return
        self.edges.setdefault((edge.first, edge.second, edge.detail), edge)

    def below(self, node: str, *kinds: EdgeKind) -> list[tuple[Edge, Node]]:
        """What hangs on a node by edges of these kinds, in which it is the first."""
        found = [each for each in self.edges.values() if each.first == node and each.kind in kinds]
        return [(each, self.nodes[each.second]) for each in found]

    def cables(self, node: str) -> list[tuple[Edge, Node]]:
        """Cables of a node, and what is at their other ends."""
        found = []
        for edge in self.edges.values():
            if edge.kind is EdgeKind.LINK and node in (edge.first, edge.second):
                found.append((edge, self.nodes[edge.second if node == edge.first else edge.first]))
        return found

    def of_kind(self, *kinds: NodeKind) -> list[Node]:
        """Nodes of these kinds."""
        return [each for each in self.nodes.values() if each.kind in kinds]

    def merge(self, other: "Graph") -> None:
        """Add another graph. Ports and NICs that both have by GUID become one, under the name that a host gave them."""
        known = {each.guid: each.id for each in self.nodes.values() if each.guid}
        renamed = {}
        for node in other.nodes.values():
            same = known.get(node.guid) if node.guid else None
            if same is not None and self.nodes[same].kind is node.kind:
                renamed[node.id] = same
        for node in other.nodes.values():
            if node.id not in renamed:
                self.add(node)
        for edge in other.edges.values():
            first, second = renamed.get(edge.first, edge.first), renamed.get(edge.second, edge.second)
            self.connect(replace(edge, first=first, second=second))


def swap(detail: str) -> str:
    """The ports of a cable from its other end."""
    near, dash, far = detail.partition("-")
    return f"{far}-{near}" if dash else detail


def describe(graph: Graph, bottleneck: Iterable[Edge] = ()) -> dict[str, Any]:
    """The document."""
    narrow = list(bottleneck)
    return {
        "schema": 1,
        "nodes": [
            {
                "id": each.id,
                "kind": each.kind,
                "name": each.name,
                "guid": each.guid,
                "detail": each.detail,
                "processors": each.processors,
            }
            for each in graph.nodes.values()
        ],
        "edges": [
            {
                "from": each.first,
                "to": each.second,
                "kind": each.kind,
                "width": each.width,
                "speed": each.speed,
                "gigabits": each.gigabits,
                "degraded": each.degraded,
                "bottleneck": each in narrow,
                "detail": each.detail,
            }
            for each in graph.edges.values()
        ],
    }
