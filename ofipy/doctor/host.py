# SPDX-License-Identifier: BSD-3-Clause
"""What the rules of one host read: its devices, and its counters at one or two moments."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ofipy.host.counter import Counter, read_device_counters, read_port_counters
from ofipy.host.device import DEVICES, Device, Port, list_devices, read_devices
from ofipy.host.flow import read_driver_counters
from ofipy.host.network import INTERFACES, list_interfaces, read_interface_counters, read_tcp_counters
from ofipy.host.tree import Tree

__all__ = ["NETWORK", "Host", "Moment", "place_of", "read_host", "read_moment"]

NETWORK = "TCP/IP"
"""The place of counters of the network namespace."""
_NODES = "sys/devices/system/node"


@dataclass(frozen=True, slots=True)
class Moment:
    """All counters that rules look at, by place and name."""

    counters: Mapping[str, Mapping[str, Counter]]


@dataclass(frozen=True, slots=True)
class Host:
    """One host, live or recorded."""

    tree: Tree
    devices: tuple[Device, ...]
    now: Moment
    before: Moment | None
    """An earlier moment; None: only totals are known."""
    seconds: float
    """Between the two moments; 0: there is one."""
    is_guest: bool
    """The processors are those of a virtual machine, so its PCI links and speeds are nobody's."""
    nodes: tuple[int, ...]
    """NUMA nodes."""

    def counters(self, place: str) -> Mapping[str, Counter]:
        """The counters of a place now, by name."""
        return self.now.counters.get(place, {})

    def growth(self, place: str, name: str) -> int | None:
        """How much a counter has grown between both moments; None: not known."""
        now = self.counters(place).get(name)
        before = self.before.counters.get(place, {}).get(name) if self.before is not None else None
        return now.value - before.value if now and before and now.value >= before.value else None

    def ports(self) -> Iterable[tuple[Device, Port, str]]:
        """Every port with its device and its place."""
        return [(device, port, place_of(device, port)) for device in self.devices for port in device.ports]

    def interfaces(self) -> list[str]:
        """Network interfaces of hardware."""
        found = list_interfaces(self.tree)
        return [name for name in found if self.tree.place(f"{INTERFACES}/{name}/device") is not None]

    @property
    def is_network_software(self) -> bool:
        """Whether no network interface is hardware, as in a virtual machine or a network namespace."""
        return self.is_guest or not self.interfaces()


def place_of(device: Device, port: Port) -> str:
    """The place of a port, as people write it."""
    return f"{device.name}/{port.number}"


def read_moment(tree: Tree) -> Moment:
    """Every counter of devices, ports, interfaces of hardware, and the network namespace."""
    found: dict[str, dict[str, Counter]] = {}
    for name in list_devices(tree):
        found[name] = by_name(read_device_counters(tree, f"{DEVICES}/{name}"))
        for number in tree.names(f"{DEVICES}/{name}/ports"):
            found[f"{name}/{number}"] = by_name(read_port_counters(tree, f"{DEVICES}/{name}/ports/{number}"))
    for name in list_interfaces(tree):
        if tree.place(f"{INTERFACES}/{name}/device") is not None:
            own = read_interface_counters(tree, name)
            found[name] = by_name([*own, *read_driver_counters(tree, name)])
    found[NETWORK] = by_name(read_tcp_counters(tree))
    return Moment(found)


def by_name(counters: Iterable[Counter]) -> dict[str, Counter]:
    """Counters by name; of two with one name the first."""
    found: dict[str, Counter] = {}
    for each in counters:
        found.setdefault(each.name, each)
    return found


def read_host(tree: Tree, before: Moment | None = None, seconds: float = 0.0) -> Host:
    """Read a host.

    Parameters
    ----------
    tree : Tree
        The host.
    before : Moment, optional
        Its counters at an earlier time.
    seconds : float
        How long ago that was.
    """
    found = (re.fullmatch(r"node([0-9]{1,4})", name) for name in tree.names(_NODES))
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", tree.text("proc/cpuinfo") or "", re.MULTILINE)
    return Host(
        tree=tree,
        devices=tuple(read_devices(tree)),
        now=read_moment(tree),
        before=before,
        seconds=seconds,
        is_guest=flags is not None and "hypervisor" in flags[1].split(),
        nodes=tuple(int(match[1]) for match in found if match),
    )
