# SPDX-License-Identifier: BSD-3-Clause
"""What ``ibnetdiscover`` prints, plain or with ``-p``, as a graph of switches, NICs and cables."""

import re
from collections.abc import Mapping

from ofipy.topology.graph import Edge, EdgeKind, Graph, Node, NodeKind

__all__ = ["is_fabric", "read_fabric", "read_names"]

_HEADER = re.compile(r'(Switch|Ca|Rt)\s+[0-9]+\s+"([SHR])-([0-9a-f]{16})"\s*#\s*"(.*?)".*')
# [1](100001) "S-0000000000200000"[2] # ... 4xSDR
_CABLE = re.compile(
    r'\[([0-9]+)\](?:\(([0-9a-f]+)\))?\s+"([SHR])-([0-9a-f]{16})"\[([0-9]+)\](?:\(([0-9a-f]+)\))?'
    r"\s*#\s*(?:lid [0-9]+ lmc [0-9]+ )?"
    r'"(.*?)" lid [0-9]+ ([0-9]+)x([A-Z0-9?]+).*'
)
# SW 4 1 0x… 4x SDR - CA 1 1 0x… ( 'Switch1' - 'Hca1' )
_LINE = re.compile(
    r"(SW|CA|RT)\s+[0-9]+\s+([0-9]+)\s+0x([0-9a-f]+)\s+([0-9]+)x\s+(\S+)\s+-\s+(SW|CA|RT)\s+[0-9]+\s+([0-9]+)\s+0x([0-9a-f]+)"
    r"\s+\(\s*'(.*?)' - '(.*?)'\s*\)\s*"
)
_ALONE = re.compile(r"(SW|CA|RT)\s+[0-9]+\s+[0-9]+\s+0x([0-9a-f]+)\s+[0-9]+x\s+\S+\s+'(.*?)'\s*")
_NAME = re.compile(r'\s*(0x[0-9a-fA-F]{1,16})\s+"?([^"]*?)"?\s*')
# Of a lane, after line coding as the kernel's file `rate` has it.
_GIGABITS = {
    "SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100, "XDR": 200,
}  # fmt: skip


def is_fabric(text: str) -> bool:
    """Whether it is the output of ibnetdiscover."""
    return any(
        _HEADER.fullmatch(line) or _LINE.fullmatch(line) or _ALONE.fullmatch(line)
        for line in text.splitlines()
    )


def read_names(text: str) -> dict[str, str]:
    """A node-name-map of infiniband-diags: names by GUID."""
    matches = (_NAME.fullmatch(line.partition("#")[0]) for line in text.splitlines())
    return {f"{int(match[1], 16):016x}": match[2] for match in matches if match}


class Fabric:
    """Builds the graph."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.graph = Graph()
        self.names = names

    def add_switch(self, guid: str, name: str) -> str:
        """A switch or router."""
        return self.graph.add(
            Node(f"switch 0x{guid}", NodeKind.SWITCH, self.names.get(guid, name), guid, "InfiniBand")
        )

    def add_adapter(self, guid: str, name: str) -> str:
        """A NIC of a host that may be known by its own document."""
        return self.graph.add(Node(f"nic 0x{guid}", NodeKind.NIC, self.names.get(guid, name), guid))

    def add_port(self, guid: str, number: str, nic: str | None, name: str) -> str:
        """A port of a NIC; with ``-p`` its NIC is not told."""
        port = self.graph.add(Node(f"port 0x{guid}", NodeKind.PORT, f"{name} port {number}", guid))
        if nic is not None:
            self.graph.connect(Edge(nic, port, EdgeKind.CONTAINS))
        return port

    def connect(self, first: str, second: str, ports: str, width: str, speed: str) -> None:
        """A cable."""
        rate = _GIGABITS.get(speed)
        gigabits = rate * int(width) if rate is not None else None
        self.graph.connect(Edge(first, second, EdgeKind.LINK, int(width), speed, gigabits, detail=ports))

    def read_plain(self, text: str) -> None:
        """The blocks of nodes: a heading, and a line for each cable."""
        here: tuple[str, str, str] | None = None  # kind, GUID, name
        for line in text.splitlines():
            heading = _HEADER.fullmatch(line)
            if heading:
                here = (heading[2], heading[3], heading[4])
                self.add_switch(here[1], here[2]) if here[0] != "H" else self.add_adapter(here[1], here[2])
            elif not line.strip():
                here = None
            elif here is not None and (cable := _CABLE.fullmatch(line)):
                near = self.end(here[0], here[1], here[2], cable[1], cable[2])
                far = self.end(cable[3], cable[4], cable[7], cable[5], cable[6])
                # Of an adapter's line the far end is a switch, whose own block has the names of both.
                self.connect(near, far, f"{cable[1]}-{cable[5]}", cable[8], cable[9])

    def end(self, kind: str, guid: str, name: str, number: str, port: str | None) -> str:
        """One end of a cable: a switch, or the port of an adapter."""
        if kind != "H":
            return self.add_switch(guid, name)
        nic = self.add_adapter(guid, name)
        return self.add_port(f"{int(port, 16):016x}" if port else f"{guid}/{number}", number, nic, name)

    def read_lines(self, text: str) -> None:
        """The output of ``-p``: a line for each port, with what is at the other end."""
        for line in text.splitlines():
            if alone := _ALONE.fullmatch(line):
                if alone[1] != "CA":
                    self.add_switch(alone[2].zfill(16), alone[3])
                continue
            if match := _LINE.fullmatch(line):
                near = self.end_of_line(match[1], match[3], match[2], match[9])
                far = self.end_of_line(match[6], match[8], match[7], match[10])
                self.connect(near, far, f"{match[2]}-{match[7]}", match[4], match[5])

    def end_of_line(self, kind: str, guid: str, number: str, name: str) -> str:
        """One end: a switch by its GUID, a port of an adapter by its own."""
        guid = guid.zfill(16)
        return self.add_switch(guid, name) if kind != "CA" else self.add_port(guid, number, None, name)


def read_fabric(text: str, names: Mapping[str, str] | None = None) -> Graph:
    """The graph of a fabric.

    Parameters
    ----------
    text : str
        What ibnetdiscover has printed, with or without ``-p``.
    names : mapping, optional
        Names by GUID, in place of those that the nodes tell.
    """
    fabric = Fabric(names or {})
    fabric.read_plain(text)
    fabric.read_lines(text)
    return fabric.graph
