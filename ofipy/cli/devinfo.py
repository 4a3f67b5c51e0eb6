# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy devinfo``: RDMA devices and ports, those that are down too, with the place that they have in the host."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ofipy.cli.devinfo_watch import watch_devices
from ofipy.cli.host import NO_DEVICE, choose_device
from ofipy.cli.look import looking
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json
from ofipy.cli.tables import print_table
from ofipy.host.bus import Bus, PcieLink
from ofipy.host.congestion import read_parameters
from ofipy.host.counter import read_port_counters
from ofipy.host.device import DEVICES, Device, Port, read_device, read_devices
from ofipy.host.flow import read_flow_control
from ofipy.host.meaning import RETRIES
from ofipy.host.network import INTERFACES, read_interface
from ofipy.host.tree import Tree

__all__ = ["describe_device", "describe_present", "show_devices"]

SCHEMA = 1
HEADINGS = (
    "device",
    "port",
    "state",
    "link",
    "rate",
    "interface",
    "NUMA",
    "PCIe",
    "firmware",
    "°C",
    "retries",
)
STYLES = {"ACTIVE": "green", "DOWN": "red"}


def show_devices(
    *,
    root: str | None,
    host: str | None,
    place: str | None,
    watch: float | None,
    number: int | None,
    as_json: bool,
) -> None:
    """Print a line for each port, or everything about one device.

    Parameters
    ----------
    root : str, optional
        A recorded tree; None: this host.
    host : str, optional
        Another host, on which a server of ``ofipy doctor`` runs.
    place : str, optional
        DEVICE or DEVICE/PORT: everything about it.
    watch : float, optional
        Then print what has changed, each time after so many seconds.
    number : int, optional
        End after so many looks; None: never, if `watch` is given.
    as_json : bool
        One document in place of a table. It always has everything.

    Raises
    ------
    CommandError
        When there is no device, or not the one that was asked for.
    """
    with looking(root, host) as look:
        show_once(look(), place, as_json=as_json, is_watched=watch is not None)
        if watch is not None:
            watch_devices(
                look,
                lambda tree: describe_present(tree, choose_devices(tree, place)),
                seconds=watch,
                number=number,
                as_json=as_json,
            )


def show_once(tree: Tree, place: str | None, *, as_json: bool, is_watched: bool) -> None:
    """Print what is there now. Whoever watches documents gets one a line.

    Raises
    ------
    CommandError
        When there is no device, or not the one that was asked for; with `is_watched` one may come.
    """
    devices = [choose(tree, place)] if place is not None else read_devices(tree)
    described = [describe_device(tree, each) for each in devices]
    if as_json and is_watched:
        click.echo(json.dumps({"schema": SCHEMA, "devices": described}))
    elif as_json:
        print_json({"schema": SCHEMA, "devices": described})
    elif place is None and devices:
        show_table(devices, described)
    else:
        for device, document in zip(devices, described, strict=True):
            show_details(device, document)
    if not devices and not is_watched:
        raise CommandError(NO_DEVICE, code=ExitCode.NO_PROVIDER)


def choose_devices(tree: Tree, place: str | None) -> list[Device]:
    """The devices that are there of those that were asked for."""
    if place is None:
        return read_devices(tree)
    try:
        return [choose(tree, place)]
    except CommandError:
        return []


def choose(tree: Tree, place: str) -> Device:
    """The device that was asked for, with that port alone if one was named."""
    name, number = choose_device(tree, place)
    device = read_device(tree, name)
    return replace(device, ports=tuple(port for port in device.ports if number in (None, port.number)))


def describe_device(tree: Tree, device: Device) -> dict[str, Any]:
    """One device in the document."""
    document = asdict(device)
    interfaces = [read_interface(tree, name) for name in device.interfaces]
    document["interfaces"] = [
        asdict(each) | {"priority_flow_control": read_flow_control(tree, each.name)}
        for each in interfaces
        if each is not None
    ]
    document["congestion_control"] = read_parameters(tree, device)
    if device.bus is not None:
        document["bus"]["gigabits"] = device.bus.gigabits
    for port in document["ports"]:
        folder = f"{DEVICES}/{device.name}/ports/{port['number']}"
        found = {each.name: each.value for each in read_port_counters(tree, folder)}
        port["retries"] = {name: found[name] for name in found if name in RETRIES}
    return document


def describe_present(tree: Tree, devices: Sequence[Device]) -> list[dict[str, Any]]:
    """The devices in the document, without those parts that went while they were read: their values would be none."""
    described = [describe_device(tree, each) for each in devices]
    for document in described:
        ports = f"{DEVICES}/{document['name']}/ports"
        document["ports"] = [
            each for each in document["ports"] if tree.place(f"{ports}/{each['number']}") is not None
        ]
        document["interfaces"] = [
            each for each in document["interfaces"] if tree.place(f"{INTERFACES}/{each['name']}") is not None
        ]
    return [each for each in described if tree.place(f"{DEVICES}/{each['name']}") is not None]


def show_table(devices: Sequence[Device], described: Sequence[dict[str, Any]]) -> None:
    """A row for each port; a device without ports has one, too."""
    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=True)
    for device, document in zip(devices, described, strict=True):
        common = place_cells(device)
        for port, told in zip(device.ports, document["ports"], strict=True):
            retries = str(sum(told["retries"].values())) if told["retries"] else "-"
            table.add_row(
                device.name,
                str(port.number),
                state_of(port),
                say(port.link_layer),
                say(port.rate),
                *common,
                retries,
            )
        if not device.ports:
            table.add_row(device.name, "-", "-", "-", "-", *common, "-")
    print_table(data_console(), table)


def place_cells(device: Device) -> list[str | Text]:
    """The cells of a row that all ports of a device share."""
    bus = device.bus
    hottest = max((each.celsius for each in bus.temperatures), default=None) if bus is not None else None
    return [
        ", ".join(device.interfaces) or "-",
        say(bus.numa_node if bus is not None else None),
        pcie_of(bus),
        say(device.firmware),
        say(hottest),
    ]


def show_details(device: Device, document: dict[str, Any]) -> None:
    """Everything about a device, one value a line."""
    console = data_console()
    console.print(device.name, style="bold")
    for name, value in details_of(device, document):
        console.print(f"    {name:22} {value}")
    for port, told in zip(device.ports, document["ports"], strict=True):
        console.print(f"  port {port.number}")
        for name, value in port_details(port, told):
            console.print(f"    {name:22} {value}")


def details_of(device: Device, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a device has besides its ports."""
    for name, value in (
        ("node type", device.node_type),
        ("driver", device.driver),
        ("node GUID", device.node_guid),
        ("system image GUID", device.system_image_guid),
        ("description", device.description),
        ("firmware", device.firmware),
        ("adapter", device.adapter),
        ("board", device.board),
        ("revision", device.revision),
    ):
        if value is not None:
            yield name, value
    if device.bus is None:
        yield "PCI address", "none: a device of software"
    else:
        yield from bus_details(device.bus)
    for each in document["interfaces"]:
        yield "interface", ", ".join(interface_details(each))
    for name, value in document["congestion_control"].items():
        yield name, str(value)


def bus_details(bus: Bus) -> Iterator[tuple[str, str]]:
    """The place of a device."""
    yield "PCI address", say(bus.function)
    yield "NUMA node", "unknown" if bus.numa_node is None else str(bus.numa_node)
    if bus.processors is not None:
        yield "processors", bus.processors
    for link in bus.links:
        yield f"PCIe {link.function}", say_link(link)
    for sensor in bus.temperatures:
        limit = f", critical at {sensor.critical:g} °C" if sensor.critical is not None else ""
        yield f"temperature {sensor.label}", f"{sensor.celsius:g} °C{limit}"


def interface_details(interface: dict[str, Any]) -> Iterator[str]:
    """What a network interface has, in a few words."""
    yield f"{interface['name']} {interface['state'] or 'of unknown state'}"
    if interface["mtu"] is not None:
        yield f"MTU {interface['mtu']} bytes"
    if interface["megabits"] is not None:
        yield f"{interface['megabits']} Mb/s"
    for side in ("notification", "reaction"):
        priorities = interface[f"ecn_{side}"]
        if priorities is not None:
            yield f"ECN {side} on priorities {' '.join(map(str, priorities)) or 'none'}"
    paused = interface["priority_flow_control"]
    if paused is not None:
        yield f"PFC on priorities {' '.join(map(str, paused)) or 'none'}"


def port_details(port: Port, told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a port has."""
    for name, value in (
        ("state", port.state),
        ("physical state", port.physical_state),
        ("link layer", port.link_layer),
        ("rate and width", port.rate),
        ("LID", port.lid),
        ("LID mask count", port.lid_mask_count),
        ("subnet manager LID", port.sm_lid),
        ("subnet manager SL", port.sm_sl),
        ("capability mask", port.capabilities),
    ):
        if value is not None:
            yield name, str(value)
    for gid in port.gids:
        yield f"GID {gid.index}", " ".join(each for each in (gid.gid, gid.type, gid.interface) if each)
    for key in port.partition_keys:
        yield f"P_Key {key.index}", key.key
    for name, count in told["retries"].items():
        yield name, str(count)


def state_of(port: Port) -> Text:
    """Both states of a port, in a colour."""
    text = ", ".join(each for each in (port.state, port.physical_state) if each)
    return Text(text or "-", STYLES.get(port.state or "", "yellow"))


def pcie_of(bus: Bus | None) -> Text | str:
    """What the narrowest link carries, marked where a link is narrower or slower than the device could have it."""
    if bus is None or bus.gigabits is None:
        return "-"
    return Text(f"{bus.gigabits:g} Gb/s", "yellow" if any(map(is_reduced, bus.links)) else "")


def is_reduced(link: PcieLink) -> bool:
    """Whether a link has fewer lanes, or slower ones, than the function below it could use."""
    pairs = (link.speed, link.max_speed), (link.width, link.max_width)
    return any(now is not None and most is not None and now < most for now, most in pairs)


def say_link(link: PcieLink) -> str:
    """A PCI Express link: what it is now, and what it could be."""
    now = f"{say(link.speed)} GT/s x{say(link.width)}"
    return f"{now}, at most {say(link.max_speed)} GT/s x{say(link.max_width)}"


def say(value: float | str | None) -> str:
    """A value, or a dash."""
    return f"{value:g}" if isinstance(value, float) else "-" if value is None else str(value)
