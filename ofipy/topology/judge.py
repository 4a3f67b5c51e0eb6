# SPDX-License-Identifier: BSD-3-Clause
"""Which edges carry less than they could, and which one is the narrowest."""

from collections import defaultdict
from dataclasses import replace

from ofipy.topology.graph import Edge, EdgeKind, Graph, NodeKind

__all__ = ["find_bottlenecks", "mark_degraded"]


def mark_degraded(graph: Graph) -> None:
    """Mark cables that carry less than both ends do elsewhere. A port has one cable, so it counts as all ports do.

    ibnetdiscover tells what a link does, not what its ends could. So the best of each switch, and of all adapters of
    the fabric, stands for that.
    """
    best: dict[str, float] = defaultdict(float)
    cables = [
        each for each in graph.edges.values() if each.kind is EdgeKind.LINK and each.gigabits is not None
    ]
    for edge in cables:
        for end in (edge.first, edge.second):
            best[group_of(graph, end)] = max(best[group_of(graph, end)], edge.gigabits or 0)
    for key, edge in list(graph.edges.items()):
        if edge.kind is EdgeKind.LINK and edge.gigabits is not None:
            able = min(best[group_of(graph, end)] for end in (edge.first, edge.second))
            if edge.gigabits < able:
                graph.edges[key] = replace(edge, degraded=True)


def group_of(graph: Graph, node: str) -> str:
    """A switch by itself, all others together."""
    return node if graph.nodes[node].kind is NodeKind.SWITCH else "adapters"


def find_bottlenecks(graph: Graph) -> list[Edge]:
    """The narrowest edges, degraded ones first; none where all that lie one behind the other are equal.

    The narrowest of a fabric without a degraded edge is one that carries less than a port or cable next to it: a slot
    before a port, or a link between switches.
    """
    known = [each for each in graph.edges.values() if each.gigabits is not None]
    degraded = [each for each in known if each.degraded]
    if not degraded:
        degraded = [
            each for each in known if each.gigabits is not None and is_narrow(graph, each, each.gigabits)
        ]
    least = min((each.gigabits or 0 for each in degraded), default=0)
    return [each for each in degraded if each.gigabits == least]


def is_narrow(graph: Graph, edge: Edge, gigabits: float) -> bool:
    """Whether an edge carries less than what it leads to."""
    if edge.kind is EdgeKind.PCI:
        waiting, most = [edge.second], 0.0
        while waiting:
            for below, node in graph.below(waiting.pop(), EdgeKind.PCI, EdgeKind.CONTAINS):
                if node.kind is NodeKind.PORT:
                    most = max(most, below.gigabits or 0)
                waiting.append(node.id)
        return gigabits < most
    if edge.kind is EdgeKind.LINK:
        ends = [graph.nodes[edge.first], graph.nodes[edge.second]]
        if any(end.kind is not NodeKind.SWITCH for end in ends):
            return False
        return any(gigabits < (other.gigabits or 0) for end in ends for other, _ in graph.cables(end.id))
    return False
