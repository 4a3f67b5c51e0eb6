# SPDX-License-Identifier: BSD-3-Clause
"""The graph in the language of Graphviz, and as a picture drawn by its program ``dot``."""

import subprocess
from collections.abc import Collection, Sequence

from ofipy.host.command import find_tool
from ofipy.topology.graph import Edge, EdgeKind, Graph, Node, NodeKind

__all__ = ["NoGraphviz", "draw", "write_dot"]

_SHAPES = {
    NodeKind.HOST: ("box3d", "#dbe9f6"),
    NodeKind.NUMA: ("box", "#eef3f8"),
    NodeKind.BRIDGE: ("box", "#f4f4f4"),
    NodeKind.NIC: ("component", "#e3f1df"),
    NodeKind.PORT: ("oval", "#e3f1df"),
    NodeKind.GPU: ("component", "#fbeecb"),
    NodeKind.SWITCH: ("hexagon", "#ece4f4"),
}
_LONGEST = 60.0  # seconds of a drawing


class NoGraphviz(Exception):
    """There is no dot, or it has failed."""


def quote(text: str) -> str:
    """A string of the language. What a cable or a peer is called cannot end it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{"".join(c for c in escaped if c.isprintable())}"'


def label_of(node: Node) -> str:
    """Name, and in a second line what it is."""
    words = "" if node.kind in (NodeKind.BRIDGE, NodeKind.HOST) else node.detail
    return f"{node.name}\n{words}".strip()


def label_edge(edge: Edge) -> str:
    """What it carries."""
    lanes = f"{edge.speed or ''} x{edge.width}".strip() if edge.width is not None else ""
    rate = f"{edge.gigabits:g} Gb/s" if edge.gigabits is not None else ""
    return "\n".join(each for each in (lanes, rate, "degraded" if edge.degraded else "") if each)


def write_dot(graph: Graph, bottlenecks: Sequence[Edge], marked: Collection[str] = ()) -> str:
    """The graph in the language of Graphviz; each host a box of its own, bottlenecks and marked nodes red."""
    lines = [
        "graph topology {",
        '  graph [rankdir=TB, fontname="sans-serif", nodesep=0.25, ranksep=0.5];',
        '  node [fontname="sans-serif", fontsize=10, style=filled, margin="0.1,0.05"];',
        '  edge [fontname="sans-serif", fontsize=8, color="#666666"];',
    ]
    hosts = [each.id for each in graph.of_kind(NodeKind.HOST)]
    for number, host in enumerate(hosts):
        lines.append(
            f"  subgraph cluster_{number} {{ label={quote(host)}; style=rounded; color={quote('#9ab3c9')};"
        )
        lines += [
            f"    {write_node(each, each.id in marked)}" for each in graph.nodes.values() if is_of(each, host)
        ]
        lines.append("  }")
    rest = [each for each in graph.nodes.values() if not any(is_of(each, host) for host in hosts)]
    lines += [f"  {write_node(each, each.id in marked)}" for each in rest]
    narrow = set(map(id, bottlenecks))
    for edge in graph.edges.values():
        marks = [f"label={quote(label_edge(edge))}"]
        if id(edge) in narrow:
            marks.append('color="#d62728", penwidth=3, fontcolor="#d62728"')
        elif edge.kind is EdgeKind.LINK:
            marks.append("penwidth=1.5")
        elif edge.kind is EdgeKind.CONTAINS:
            marks.append("style=dashed")
        lines.append(f"  {quote(edge.first)} -- {quote(edge.second)} [{', '.join(marks)}];")
    return "\n".join([*lines, "}", ""])


def is_of(node: Node, host: str) -> bool:
    """Whether a node belongs to a host."""
    return node.id == host or node.id.startswith(f"{host}/")


def write_node(node: Node, is_marked: bool) -> str:
    """One node."""
    shape, colour = _SHAPES[node.kind]
    mark = ', color="#d62728", penwidth=3' if is_marked else ""
    return (
        f"{quote(node.id)} [label={quote(label_of(node))}, shape={shape}, fillcolor={quote(colour)}{mark}];"
    )


def draw(text: str) -> str:
    """The picture as SVG.

    Raises
    ------
    NoGraphviz
        When there is no program ``dot``, or it fails.
    """
    program = find_tool("dot")
    if program is None:
        raise NoGraphviz(
            "dot of Graphviz is not installed: apt install graphviz, or --dot and draw elsewhere"
        )
    try:
        ran = subprocess.run(
            (program, "-Tsvg"), input=text.encode(), capture_output=True, timeout=_LONGEST, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoGraphviz(f"dot: {error}") from error
    if ran.returncode:
        raise NoGraphviz(f"dot: {ran.stderr.decode('utf-8', 'replace').strip()}")
    return ran.stdout.decode("utf-8", "replace")
