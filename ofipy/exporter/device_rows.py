# SPDX-License-Identifier: BSD-3-Clause
"""Rows of RDMA devices, their ports and TCP, out of the kernel's files."""

from ofipy.exporter import device_families as families
from ofipy.exporter.family import Rows
from ofipy.exporter.flow_rows import add_flow_control
from ofipy.host.bus import Bus
from ofipy.host.congestion import read_parameters
from ofipy.host.counter import Counter, read_aer_counters, read_counters, read_port_counters
from ofipy.host.device import DEVICES, Device, Port, read_devices
from ofipy.host.meaning import RETRIES, Kind
from ofipy.host.network import read_interface, read_tcp_counters
from ofipy.host.tree import Tree

__all__ = ["add_devices"]

_BYTES_OF_GIGABIT = 125_000_000


def add_devices(rows: Rows, tree: Tree) -> None:
    """Add everything that a host tells of its devices and its TCP."""
    interfaces: dict[str, None] = {}
    for device in read_devices(tree):
        add_device(rows, tree, device)
        interfaces |= dict.fromkeys(device.interfaces)
    for interface in interfaces:
        add_congestion_control(rows, tree, interface)
        add_flow_control(rows, tree, interface)
    for counter in read_tcp_counters(tree):
        if counter.kind is Kind.LEVEL:
            rows.add(families.TCP_LEVEL, (), counter.value)
        else:
            rows.add(families.TCP_EVENTS, (counter.name,), counter.value)


def add_device(rows: Rows, tree: Tree, device: Device) -> None:
    """Add one device with its ports."""
    folder = f"{DEVICES}/{device.name}"
    node = device.bus.numa_node if device.bus is not None else None
    told = (device.driver, device.firmware, device.board, device.adapter, node)
    texts = ("" if each is None else str(each) for each in told)
    rows.add(families.RDMA_INFO, (device.name, *texts), 1)
    if device.bus is not None:
        add_bus(rows, device.name, device.bus)
    for name, value in read_parameters(tree, device).items():
        rows.add(families.CONGESTION_PARAMETER, (device.name, name), value)
    for error in read_aer_counters(tree, f"{folder}/device"):
        _, severity, name = error.name.split("_", 2)
        rows.add(families.PCIE_ERRORS, (device.name, severity, name), error.value)
    add_counters(rows, (device.name, ""), list(read_counters(tree, f"{folder}/hw_counters")))
    for port in device.ports:
        place = (device.name, str(port.number))
        add_port(rows, place, port)
        add_counters(rows, place, read_port_counters(tree, f"{folder}/ports/{port.number}"))


def add_bus(rows: Rows, device: str, bus: Bus) -> None:
    """Add what a device's slot carries, and its temperatures."""
    if bus.gigabits is not None:
        rows.add(families.PCIE_RATE, (device,), bus.gigabits * _BYTES_OF_GIGABIT)
    for sensor in bus.temperatures:
        rows.add(families.TEMPERATURE, (device, sensor.label), sensor.celsius)
        rows.offer(families.TEMPERATURE_LIMIT, (device, sensor.label), sensor.critical)


def add_port(rows: Rows, place: tuple[str, str], port: Port) -> None:
    """Add the states and the rate of a port."""
    rows.offer(families.STATE, place, families.STATES.get(port.state or ""))
    rows.offer(families.PHYSICAL_STATE, place, families.PHYSICAL_STATES.get(port.physical_state or ""))
    if port.gigabits is not None:
        rows.add(families.RATE, place, port.gigabits * _BYTES_OF_GIGABIT)


def add_counters(rows: Rows, place: tuple[str, str], counters: list[Counter]) -> None:
    """Add the counters of a port, or of a device, whose port is empty. A name counts once: the first file has it."""
    seen: dict[str, Counter] = {}
    for counter in counters:
        seen.setdefault(counter.name, counter)
    for counter in seen.values():
        if counter.kind is Kind.LEVEL:
            rows.add(families.DRIVER_LEVEL, (*place, counter.name), counter.value)
        elif counter.name in families.DEVICE_COUNTERS:
            rows.add(families.DEVICE_COUNTERS[counter.name], place, counter.value)
        else:
            rows.add(families.DRIVER_EVENTS, (*place, counter.name), counter.value)
    retries = [counter.value for counter in seen.values() if counter.name in RETRIES]
    if retries:
        rows.add(families.RETRIES_SUM, place, sum(retries))
    if seen:
        rows.add(families.SATURATED, place, sum(counter.saturated for counter in seen.values()))


def add_congestion_control(rows: Rows, tree: Tree, name: str) -> None:
    """Add for each priority of an interface whether RoCE's congestion control is on."""
    interface = read_interface(tree, name)
    if interface is None:
        return
    for role, enabled in (("np", interface.ecn_notification), ("rp", interface.ecn_reaction)):
        if enabled is not None:
            for priority in range(8):
                rows.add(families.ECN, (name, str(priority), role), float(priority in enabled))
