# SPDX-License-Identifier: BSD-3-Clause
"""The graph as trees: a host with what it has, and where its cables lead; then the switches."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree as Branches

from ofipy.topology.dot import label_edge
from ofipy.topology.graph import Edge, EdgeKind, Graph, Node, NodeKind

__all__ = ["print_graph"]


def print_graph(console: Console, graph: Graph, bottlenecks: Sequence[Edge]) -> None:
    """Print every host, then every switch, then what belongs to neither."""
    seen = set[str]()
    held = {edge.second for edge in graph.edges.values() if edge.kind is not EdgeKind.LINK}
    tops = [each for each in graph.nodes.values() if each.id not in held]
    order = (NodeKind.HOST, NodeKind.SWITCH)
    for node in sorted(tops, key=lambda each: order.index(each.kind) if each.kind in order else len(order)):
        branches = Branches(title_of(node))
        grow(graph, node, branches, bottlenecks, seen)
        console.print(branches)
    for edge in bottlenecks:
        ends = f"{say(graph.nodes[edge.first])} – {say(graph.nodes[edge.second])}"
        words = ", ".join(label_edge(edge).split("\n"))
        console.print(Text(f"bottleneck: {ends}, {words}", "red"))


def say(node: Node) -> str:
    """A node without its surroundings."""
    if node.kind is NodeKind.SWITCH:
        return f"switch {node.name}"
    return node.id if "/" in node.id else node.name


def title_of(node: Node) -> Text:
    """Name and details."""
    kind = f"{node.kind} " if node.kind in (NodeKind.SWITCH, NodeKind.GPU) else ""
    title = Text(f"{kind}{node.name}", "bold")
    if node.detail:
        title.append(f"  {node.detail}", "not bold")
    return title


def grow(graph: Graph, node: Node, branches: Branches, bottlenecks: Sequence[Edge], seen: set[str]) -> None:
    """Add what hangs on a node, and what its cables lead to."""
    if node.id in seen:
        return
    seen.add(node.id)
    for edge, below in graph.below(node.id, EdgeKind.CONTAINS, EdgeKind.PCI):
        title = title_of(below)
        if edge.kind is EdgeKind.PCI:
            title.append("  PCIe " + ", ".join(label_edge(edge).split("\n")), style_of(edge, bottlenecks))
        grow(graph, below, branches.add(title), bottlenecks, seen)
    for edge, far in graph.cables(node.id):
        ports = edge.detail if edge.first == node.id else "-".join(reversed(edge.detail.split("-", 1)))
        near_port, _, far_port = ports.partition("-")
        words = ", ".join(label_edge(edge).split("\n"))
        text = Text(f"[{near_port}] – {say(far)} [{far_port}]  {words}", style_of(edge, bottlenecks))
        branches.add(text)


def style_of(edge: Edge, bottlenecks: Sequence[Edge]) -> str:
    """Red for a bottleneck, yellow for what is degraded besides."""
    if edge in bottlenecks:
        return "red"
    return "yellow" if edge.degraded else ""
