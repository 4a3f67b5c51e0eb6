# SPDX-License-Identifier: BSD-3-Clause
"""RDMA devices and their ports, up or down, as ``/sys/class/infiniband`` describes them."""

import re
from dataclasses import dataclass

from ofipy.host.bus import Bus, read_bus
from ofipy.host.tree import Tree

__all__ = ["DEVICES", "Device", "Gid", "PartitionKey", "Port", "list_devices", "read_device", "read_devices"]

DEVICES = "sys/class/infiniband"
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,2})?) Gb/sec \(([0-9]{1,2})X(?: ([A-Z0-9]{2,6}))?\)")
_EMPTY_GID = frozenset("0:")


@dataclass(frozen=True, slots=True)
class Gid:
    """One address of a port."""

    index: int
    gid: str
    type: str | None
    """``IB/RoCE v1``, ``RoCE v2``."""
    interface: str | None


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One partition that a port belongs to."""

    index: int
    key: str


@dataclass(frozen=True, slots=True)
class Port:
    """One port. What its driver does not say is None."""

    number: int
    state: str | None
    """``DOWN``, ``INIT``, ``ARMED``, ``ACTIVE``."""
    physical_state: str | None
    """``LinkUp``, ``Polling``, ``Disabled`` and others."""
    link_layer: str | None
    rate: str | None
    """As the kernel says it: ``100 Gb/sec (4X EDR)``."""
    gigabits: float | None
    width: int | None
    """Serial links."""
    speed: str | None
    """Of each link: ``EDR``; old kernels name none for SDR."""
    lid: int | None
    lid_mask_count: int | None
    sm_lid: int | None
    sm_sl: int | None
    capabilities: str | None
    gids: tuple[Gid, ...]
    partition_keys: tuple[PartitionKey, ...]


@dataclass(frozen=True, slots=True)
class Device:
    """One device. What its driver does not say is None."""

    name: str
    node_type: str | None
    """``CA``, ``RNIC``, ``unspecified`` and others."""
    driver: str | None
    node_guid: str | None
    system_image_guid: str | None
    description: str | None
    firmware: str | None
    adapter: str | None
    board: str | None
    revision: str | None
    bus: Bus | None
    interfaces: tuple[str, ...]
    """Network interfaces of the same hardware, or below a device of software."""
    ports: tuple[Port, ...]


def list_devices(tree: Tree) -> list[str]:
    """Their names."""
    return tree.names(DEVICES)


def read_devices(tree: Tree) -> list[Device]:
    """All of them, in the order of their names."""
    return [read_device(tree, name) for name in list_devices(tree)]


def read_device(tree: Tree, name: str) -> Device:
    """One device with its ports."""
    folder = f"{DEVICES}/{name}"
    ports = tuple(
        read_port(tree, f"{folder}/ports/{number}", int(number))
        for number in tree.names(f"{folder}/ports")
        if number.isascii() and number.isdecimal() and len(number) < 4
    )
    driver = tree.place(f"{folder}/device/driver")
    below = [*tree.names(f"{folder}/device/net"), tree.line(f"{folder}/parent")]
    below += [gid.interface for port in ports for gid in port.gids]
    return Device(
        name=name,
        node_type=drop_number(tree.line(f"{folder}/node_type")),
        driver=driver.rpartition("/")[2] if driver is not None else None,
        node_guid=tree.line(f"{folder}/node_guid"),
        system_image_guid=tree.line(f"{folder}/sys_image_guid"),
        description=tree.line(f"{folder}/node_desc"),
        firmware=tree.line(f"{folder}/fw_ver"),
        adapter=tree.line(f"{folder}/hca_type"),
        board=tree.line(f"{folder}/board_id"),
        revision=tree.line(f"{folder}/hw_rev"),
        bus=read_bus(tree, f"{folder}/device"),
        interfaces=tuple(dict.fromkeys(each for each in below if each)),
        ports=ports,
    )


def read_port(tree: Tree, folder: str, number: int) -> Port:
    """One port."""
    rate = tree.line(f"{folder}/rate")
    parts = _RATE.fullmatch(rate or "")
    return Port(
        number=number,
        state=drop_number(tree.line(f"{folder}/state")),
        physical_state=drop_number(tree.line(f"{folder}/phys_state")),
        link_layer=tree.line(f"{folder}/link_layer"),
        rate=rate,
        gigabits=float(parts[1]) if parts else None,
        width=int(parts[2]) if parts else None,
        speed=parts[3] or "SDR" if parts else None,
        lid=tree.number(f"{folder}/lid"),
        lid_mask_count=tree.number(f"{folder}/lid_mask_count"),
        sm_lid=tree.number(f"{folder}/sm_lid"),
        sm_sl=tree.number(f"{folder}/sm_sl"),
        capabilities=tree.line(f"{folder}/cap_mask"),
        gids=tuple(read_gids(tree, folder)),
        partition_keys=tuple(read_partition_keys(tree, folder)),
    )


def read_gids(tree: Tree, folder: str) -> list[Gid]:
    """The addresses of a port. A slot without an address has zeros, and no type."""
    found = []
    for index in tree.names(f"{folder}/gids"):
        gid = tree.line(f"{folder}/gids/{index}")
        if gid is None or not index.isdecimal() or not index.isascii() or set(gid) <= _EMPTY_GID:
            continue
        attributes = f"{folder}/gid_attrs"
        kind, interface = tree.line(f"{attributes}/types/{index}"), tree.line(f"{attributes}/ndevs/{index}")
        found.append(Gid(int(index[:9]), gid, kind, interface))
    return found


def read_partition_keys(tree: Tree, folder: str) -> list[PartitionKey]:
    """The partitions of a port. A slot without one has 0x0000."""
    found = []
    for index in tree.names(f"{folder}/pkeys"):
        key = tree.line(f"{folder}/pkeys/{index}")
        if key is not None and index.isdecimal() and index.isascii() and set(key) - set("0x"):
            found.append(PartitionKey(int(index[:9]), key))
    return found


def drop_number(text: str | None) -> str | None:
    """The name out of ``4: ACTIVE``."""
    number, colon, name = (text or "").partition(":")
    return name.strip() or text if colon and number.strip().isdecimal() else text
