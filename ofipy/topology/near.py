# SPDX-License-Identifier: BSD-3-Clause
"""Which NIC is nearest to a processor: of its own NUMA node first, then by the distances that the firmware tells."""

import re

from ofipy.doctor.placement import read_processors
from ofipy.topology.graph import Graph, Node, NodeKind

__all__ = ["rank_nics"]

_DISTANCES = re.compile(r"distances ([0-9 ]+)")
_LOCAL = 10  # of a node to itself, by the definition of ACPI's SLIT
_UNKNOWN = 255  # likewise: not reachable


def rank_nics(graph: Graph, processor: int) -> list[tuple[int, Node]]:
    """Every NIC of a host with its distance from a processor, the nearest first.

    Parameters
    ----------
    graph : Graph
        Of one host.
    processor : int
        As the kernel numbers them.
    """
    nodes = {int(each.id.rpartition("node")[2]): each for each in graph.of_kind(NodeKind.NUMA)}
    here = next(
        (number for number, each in nodes.items() if processor in read_processors(each.processors)), None
    )
    told = _DISTANCES.search(nodes[here].detail) if here is not None else None
    distances = dict(zip(sorted(nodes), map(int, told[1].split()), strict=False)) if told else {}
    ranked = []
    for nic in graph.of_kind(NodeKind.NIC):
        near = read_processors(nic.processors)
        if processor in near:
            distance = _LOCAL
        else:
            homes = [number for number, each in nodes.items() if near & read_processors(each.processors)]
            distance = min((distances.get(number, _UNKNOWN) for number in homes), default=_UNKNOWN)
        ranked.append((distance, nic))
    return sorted(ranked, key=lambda each: each[0])
