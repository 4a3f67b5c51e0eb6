# SPDX-License-Identifier: BSD-3-Clause
"""A whole host as an archive: everything that ``ofipy devinfo`` and ``ofipy counters`` read of it."""

from ofipy.doctor.record import RecordingTree
from ofipy.host.congestion import read_parameters
from ofipy.host.counter import read_device_counters, read_port_counters
from ofipy.host.device import DEVICES, read_devices
from ofipy.host.flow import read_flow_control, read_flow_counters
from ofipy.host.network import list_interfaces, read_interface, read_interface_counters, read_tcp_counters
from ofipy.host.tree import Tree

__all__ = ["pack_machine", "read_all"]


def read_all(tree: Tree) -> None:
    """Read devices, interfaces and counters, so that a recording has them."""
    for device in read_devices(tree):
        folder = f"{DEVICES}/{device.name}"
        read_device_counters(tree, folder)
        for port in device.ports:
            read_port_counters(tree, f"{folder}/ports/{port.number}")
        read_parameters(tree, device)
    for name in list_interfaces(tree, loopback=True):
        read_interface(tree, name)
        read_interface_counters(tree, name)
        read_flow_control(tree, name)
        read_flow_counters(tree, name)
    read_tcp_counters(tree)


def pack_machine(root: str) -> bytes:
    """The host below a folder as it is now, in a compressed archive."""
    tree = RecordingTree(root)
    read_all(tree)
    return tree.pack()
