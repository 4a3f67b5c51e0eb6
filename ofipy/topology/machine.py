# SPDX-License-Identifier: BSD-3-Clause
"""One host as a graph: its NUMA nodes, PCI bridges, NICs with their ports, and GPUs."""

import json
import re
from typing import Any

from ofipy.host.bus import PcieLink, is_degraded, read_link
from ofipy.host.command import read_command
from ofipy.host.device import Device, Port, read_devices
from ofipy.host.network import INTERFACES, list_interfaces, read_interface
from ofipy.host.tree import Tree
from ofipy.topology.graph import Edge, EdgeKind, Graph, Node, NodeKind

__all__ = ["read_machine"]

_FUNCTION = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_DEVICES = "sys/bus/pci/devices"
_NODES = "sys/devices/system/node"
_ACCELERATORS = (0x0302, 0x1200)  # PCI classes: 3D controller, processing accelerator
_DISPLAY = 0x0300
_GPU_VENDORS = {0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel"}  # others show consoles


class Machine:
    """Builds the graph of one host."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.graph = Graph()
        self.host = tree.line("proc/sys/kernel/hostname") or "host"
        self.graph.add(Node(self.host, NodeKind.HOST, self.host))

    def id(self, name: str) -> str:
        """The id of something of this host."""
        return f"{self.host}/{name}"

    def add_nodes(self) -> None:
        """The NUMA nodes with their processors."""
        for name in self.tree.names(_NODES):
            if re.fullmatch(r"node[0-9]{1,4}", name):
                processors = self.tree.line(f"{_NODES}/{name}/cpulist") or ""
                detail = f"processors {processors}" if processors else "no processors"
                distances = self.tree.line(f"{_NODES}/{name}/distance") or ""
                detail += f", distances {distances}" if " " in distances else ""
                node = Node(self.id(name), NodeKind.NUMA, f"node {name[4:]}", None, detail, processors)
                self.graph.add(node)
                self.graph.connect(Edge(self.host, node.id, EdgeKind.CONTAINS))

    def add_path(self, folder: str) -> tuple[str, PcieLink | None]:
        """The bridges above a device. Returns the node to which the device belongs, and its link."""
        place = self.tree.place(folder)
        parts = place.split("/") if place is not None else []
        functions = [depth for depth, part in enumerate(parts) if _FUNCTION.fullmatch(part)]
        numa = self.tree.number(f"{folder}/numa_node")
        above = self.id(f"node{numa}") if numa is not None and numa >= 0 else self.host
        if above not in self.graph.nodes:
            above = self.host
        links = ["/".join(parts[: depth + 1]) for depth in functions]
        for path, depth in zip(links[:-1], functions[:-1], strict=True):
            function = parts[depth]
            bridge = Node(self.id(function), NodeKind.BRIDGE, function, None, "PCI bridge")
            if bridge.id not in self.graph.nodes:
                self.graph.add(bridge)
                self.connect_pci(above, bridge.id, path, depth == functions[0])
            above = bridge.id
        link = read_link(self.tree, links[-1], parts[functions[-1]]) if links else None
        return above, link

    def connect_pci(self, above: str, node: str, folder: str, is_root: bool) -> None:
        """The link above a bridge or device. A port of the root is inside the processor, so it hangs on no link."""
        if is_root:
            self.graph.connect(Edge(above, node, EdgeKind.CONTAINS))
            return
        link = read_link(self.tree, folder, folder.rpartition("/")[2])
        upper = read_link(self.tree, folder.rpartition("/")[0], "")
        self.graph.connect(pci_edge(above, node, link, upper))

    def add_device(self, node: Node, folder: str) -> str:
        """A device of the PCI bus, below its bridges."""
        self.graph.add(node)
        place = self.tree.place(folder)
        above, link = self.add_path(folder)
        if place is None or self.graph.nodes[above].kind is not NodeKind.BRIDGE:
            self.graph.connect(Edge(above, node.id, EdgeKind.CONTAINS))
        else:
            upper = read_link(self.tree, place.rpartition("/")[0], "")
            self.graph.connect(pci_edge(above, node.id, link, upper))
        return node.id

    def add_rdma(self) -> set[str]:
        """RDMA devices and their ports. Returns the interfaces that belong to them."""
        taken = set[str]()
        for device in read_devices(self.tree):
            detail = ", ".join(each for each in (device.driver, device.adapter, device.firmware) if each)
            near = device.bus.processors or "" if device.bus is not None else ""
            guid = plain_guid(device.node_guid)
            node = Node(self.id(device.name), NodeKind.NIC, device.name, guid, detail, near)
            if device.bus is None:
                self.graph.add(node)
                self.graph.connect(Edge(self.host, node.id, EdgeKind.CONTAINS))
            else:
                self.add_device(node, f"sys/class/infiniband/{device.name}/device")
                taken |= set(device.interfaces)
            for port in device.ports:
                self.add_port(device, port, node.id)
        return taken

    def add_port(self, device: Device, port: Port, nic: str) -> None:
        """A port, by whose GUID the fabric knows it."""
        words = [port.state, port.rate, port.link_layer]
        interfaces = dict.fromkeys(each.interface for each in port.gids if each.interface)
        name = self.id(f"{device.name}/{port.number}")
        detail = ", ".join(each for each in (*words, *interfaces) if each)
        guid = None
        if port.link_layer == "InfiniBand" and port.gids:
            guid = port.gids[0].gid.replace(":", "")[16:]
        node = Node(name, NodeKind.PORT, f"port {port.number}", guid, detail)
        self.graph.add(node)
        self.graph.connect(
            Edge(
                nic,
                node.id,
                EdgeKind.CONTAINS,
                port.width,
                port.speed,
                port.gigabits if port.state == "ACTIVE" else None,
            )
        )

    def add_interfaces(self, taken: set[str]) -> None:
        """Network interfaces of hardware that are of no RDMA device."""
        for name in list_interfaces(self.tree):
            found = read_interface(self.tree, name)
            folder = f"{INTERFACES}/{name}/device"
            if name in taken or found is None or self.tree.place(folder) is None:
                continue
            rate = f"{found.megabits} Mb/s" if found.megabits else ""
            detail = ", ".join(
                each for each in (found.state, rate, f"MTU {found.mtu}" if found.mtu else "") if each
            )
            near = self.tree.line(f"{folder}/local_cpulist") or ""
            self.add_device(Node(self.id(name), NodeKind.NIC, name, None, detail, near), folder)

    def add_gpus(self) -> None:
        """GPUs: accelerators, and displays of their vendors."""
        for function in self.tree.names(_DEVICES):
            folder = f"{_DEVICES}/{function}"
            kind = (self.tree.number(f"{folder}/class") or 0) >> 8
            vendor = self.tree.number(f"{folder}/vendor") or 0
            if kind in _ACCELERATORS or (kind == _DISPLAY and vendor in _GPU_VENDORS):
                model = self.tree.number(f"{folder}/device")
                detail = _GPU_VENDORS.get(vendor, f"vendor {vendor:#06x}")
                detail += f" {model:#06x}" if model is not None else ""
                near = self.tree.line(f"{folder}/local_cpulist") or ""
                self.add_device(Node(self.id(function), NodeKind.GPU, function, None, detail, near), folder)

    def add_neighbours(self) -> None:
        """Ethernet switches that LLDP has seen."""
        text = read_command(self.tree, "lldpcli", "-f", "json", "show", "neighbors")
        for interface, switch, port in read_neighbours(text or ""):
            node = Node(f"switch {switch}", NodeKind.SWITCH, switch, None, "Ethernet")
            near = self.find_end(interface)
            if near is not None:
                self.graph.add(node)
                self.graph.connect(Edge(near, node.id, EdgeKind.LINK, detail=f"{interface}-{port}"))

    def find_end(self, interface: str) -> str | None:
        """The port or NIC that has an interface."""
        for node in self.graph.of_kind(NodeKind.PORT):
            if interface in node.detail.split(", "):
                return node.id
        name = self.id(interface)
        return name if name in self.graph.nodes else None


def plain_guid(text: str | None) -> str | None:
    """The digits of a GUID; None where it is zero."""
    digits = (text or "").replace(":", "").lower()
    return digits if set(digits) - {"0"} else None


def pci_edge(above: str, node: str, link: PcieLink | None, upper: PcieLink | None) -> Edge:
    """The edge of a PCI link with both its ends."""
    if link is None:
        return Edge(above, node, EdgeKind.PCI)
    speed = f"{link.speed:g} GT/s" if link.speed is not None else None
    degraded = upper is not None and is_degraded(link, upper)
    return Edge(above, node, EdgeKind.PCI, link.width, speed, link.gigabits, degraded)


def read_neighbours(text: str) -> list[tuple[str, str, str]]:
    """Interface, switch and port out of lldpcli's document; nothing where it is none."""
    try:
        interfaces: Any = json.loads(text)["lldp"]["interface"]
        found = []
        for entry in interfaces if isinstance(interfaces, list) else [interfaces]:
            for interface, told in entry.items():
                switch = next(iter(told["chassis"]))
                port = told["port"]["id"]["value"]
                found.append((str(interface), str(switch), str(port)))
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return []
    return found


def read_machine(tree: Tree) -> Graph:
    """The graph of a host."""
    machine = Machine(tree)
    machine.add_nodes()
    taken = machine.add_rdma()
    machine.add_interfaces(taken)
    machine.add_gpus()
    machine.add_neighbours()
    return machine.graph
