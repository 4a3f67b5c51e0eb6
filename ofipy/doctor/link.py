# SPDX-License-Identifier: BSD-3-Clause
"""Rules on the link of a port: up, with all lanes, at the rate of its neighbours."""

from collections.abc import Iterator

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Host, place_of
from ofipy.doctor.rules import find, judge
from ofipy.host.device import DEVICES, Device, Port

__all__ = ["check_rates", "check_states", "check_widths"]


def is_up(port: Port) -> bool:
    """Whether it carries messages."""
    return port.state == "ACTIVE" and port.physical_state in ("LinkUp", None)


def folder_of(device: Device, port: Port) -> str:
    """Where the kernel describes it."""
    return f"{DEVICES}/{device.name}/ports/{port.number}"


def check_states(host: Host) -> Iterator[Finding]:
    """Whether each port is up. A port that is unused beside one that is up is no failure."""
    for device, port, place in host.ports():
        sources = [f"{folder_of(device, port)}/{name}" for name in ("state", "phys_state")]
        text = ", ".join(each for each in (port.state, port.physical_state, port.rate) if each)
        if port.state is None:
            yield find("link.state", State.ABSENT, "the driver does not say", place=place, sources=sources)
        elif is_up(port):
            yield find("link.state", State.OK, text, place=place, sources=sources)
        elif has_other_port(host, device, place):
            state = State.ABSENT if port.physical_state == "Disabled" else State.WARNING
            text += "; another port of this adapter is up"
            yield find("link.state", state, text, place=place, sources=sources, remedy=remedy_of(port))
        else:
            yield find("link.state", State.FAILED, text, place=place, sources=sources, remedy=remedy_of(port))


def has_other_port(host: Host, device: Device, place: str) -> bool:
    """Whether another port of the same adapter is up: one often has no cable."""
    return any(
        is_up(port) and other != place and is_same_adapter(device, each) for each, port, other in host.ports()
    )


def is_same_adapter(device: Device, other: Device) -> bool:
    """Whether both are functions of one card."""
    image = device.system_image_guid
    return device is other or (image is not None and image == other.system_image_guid)


def remedy_of(port: Port) -> str | None:
    """What brings this port up; None: what the rule says."""
    if port.link_layer == "InfiniBand" and port.state in ("INIT", "ARMED"):
        return "no subnet manager has configured it: start opensm on one host, or the switch's (sminfo)"
    if port.physical_state == "Disabled":
        return "ip link set IF up, or ibportstate LID PORT enable"
    return None


def check_widths(host: Host) -> Iterator[Finding]:
    """Whether InfiniBand uses all lanes of the cable. Ethernet has rates of one lane, so its width says nothing."""
    for device, port, place in host.ports():
        if device.bus is None or port.link_layer != "InfiniBand" or not is_up(port) or port.width is None:
            continue
        best = max(each.width or 0 for _, each in alike(host, device, port))
        # One lane is what is left of four when a cable is damaged; nobody sells such a link.
        yield judge(
            "link.width",
            port.width,
            f"{port.width} lanes" + (f"; a port alike has {best}" if best > port.width else ""),
            place=place,
            sources=(f"{folder_of(device, port)}/rate",),
            warning=best,
            failure=2,
        )


def check_rates(host: Host) -> Iterator[Finding]:
    """Whether a port is slower than one of the same adapter model on this host."""
    for device, port, place in host.ports():
        if device.bus is None or not is_up(port) or port.gigabits is None:
            continue
        # A width that is too small is told by its own rule.
        others = [each for _, each in alike(host, device, port) if each.width == port.width]
        best = max((each.gigabits or 0 for each in others), default=port.gigabits)
        yield judge(
            "link.rate",
            port.gigabits,
            f"{port.rate}" + (f"; a port alike has {best:g} Gb/s" if best > port.gigabits else ""),
            place=place,
            sources=(f"{folder_of(device, port)}/rate",),
            warning=best,
        )


def alike(host: Host, device: Device, port: Port) -> list[tuple[str, Port]]:
    """Ports that should be equal: of the same board and link layer, and up."""
    return [
        (place_of(other, each), each)
        for other in host.devices
        for each in other.ports
        if (device is other or (device.board is not None and device.board == other.board))
        and each.link_layer == port.link_layer
        and is_up(each)
    ]
