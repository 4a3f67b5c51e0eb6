# SPDX-License-Identifier: BSD-3-Clause
"""Rules on PCI Express: what the slot carries, and errors that the bus has reported."""

from collections.abc import Iterator

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Host
from ofipy.doctor.rules import find, judge
from ofipy.host.bus import Bus, PcieLink, is_degraded
from ofipy.host.device import DEVICES, Device

__all__ = ["check_errors", "check_slots"]

_USABLE = 0.9  # of what is left after line coding: headers, flow control and acknowledgements take the rest
_SEVERITIES = ("correctable", "nonfatal", "fatal")


def check_slots(host: Host) -> Iterator[Finding]:
    """Whether every link up to the root carries the port's rate, and none is below what both its ends can do."""
    for device in host.devices:
        bus = device.bus
        if bus is None or bus.function is None or bus.gigabits is None:
            continue
        sources = [f"{DEVICES}/{device.name}/device/current_link_{each}" for each in ("speed", "width")]
        usable = round(bus.gigabits * _USABLE, 1)
        text = f"{usable:g} Gb/s of {say_narrowest(bus)} can be used"
        place = f"{device.name} {bus.function}"
        if host.is_guest:
            text += "; the bus of a virtual machine"
            yield find("pcie.width", State.UNJUDGED, text, place=place, sources=sources, measured=usable)
        elif (degraded := find_degraded(bus)) is not None:
            link, capable = degraded
            text += f"; {say(link)} at {link.function}, although both ends can do {capable}"
            yield find("pcie.width", State.FAILED, text, place=place, sources=sources, measured=usable)
        else:
            rate = max((port.gigabits or 0 for port in device.ports if port.state == "ACTIVE"), default=0)
            text += f", the port has {rate:g} Gb/s" if rate else ""
            yield judge(
                "pcie.width", usable, text, place=place, sources=sources, warning=rate,
                remedy="a slot with more lanes or a newer generation: lspci -vv, LnkSta and LnkCap",
            )  # fmt: skip


def say(link: PcieLink) -> str:
    """Speed and width in few characters."""
    return f"{link.speed:g} GT/s x{link.width}"


def say_narrowest(bus: Bus) -> str:
    """The link that carries least."""
    known = [link for link in bus.links if link.gigabits is not None]
    return say(min(known, key=lambda link: link.gigabits or 0))


def find_degraded(bus: Bus) -> tuple[PcieLink, str] | None:
    """The first link that is slower or narrower than both its ends can do, and what they can do.

    A link has two ends, and each reports it: the device and the port below the root, then the upstream port of a switch
    and the port above. A virtual function reports none, so its chain begins with one end alone.
    """
    links = list(bus.links)
    if len(links) % 2 or links[0].function != bus.function:
        return None
    for lower, upper in zip(links[::2], links[1::2], strict=True):
        if is_degraded(lower, upper):
            speeds = [each for each in (lower.max_speed, upper.max_speed) if each is not None]
            widths = [each for each in (lower.max_width, upper.max_width) if each is not None]
            return lower, f"{min(speeds):g} GT/s x{min(widths)}"
    return None


def check_errors(host: Host) -> Iterator[Finding]:
    """Errors that the bus has reported: new ones, or standing ones that a retry did not repair."""
    for device in host.devices:
        counters = {
            name: each for name, each in host.counters(device.name).items() if name.startswith("aer_")
        }
        if not counters or device.bus is None:
            continue
        place = f"{device.name} {device.bus.function}"
        sources = [f"{DEVICES}/{device.name}/device/aer_dev_{each}" for each in _SEVERITIES]
        grown = {name: host.growth(device.name, name) or 0 for name in counters}
        grown = {name: value for name, value in grown.items() if value}
        yield judge_errors(
            device, place, sources, grown, {name: each.value for name, each in counters.items()}
        )


def judge_errors(
    device: Device, place: str, sources: list[str], grown: dict[str, int], standing: dict[str, int]
) -> Finding:
    """New errors first; corrected ones that are long over are usual at power-on."""
    rule = "pcie.aer"
    if grown:
        serious = any(not name.startswith("aer_correctable") for name in grown)
        text = ", ".join(f"{name.removeprefix('aer_')} +{value}" for name, value in grown.items())
        state = State.FAILED if serious else State.WARNING
        return find(
            rule, state, text, place=place, sources=sources, measured=sum(grown.values()), threshold=0
        )
    old = {name: value for name, value in standing.items() if value and "correctable" not in name}
    if old:
        text = ", ".join(f"{name.removeprefix('aer_')} {value}" for name, value in old.items())
        text = f"{device.name} has reported {text} since the host started"
        return find(
            rule, State.WARNING, text, place=place, sources=sources, measured=sum(old.values()), threshold=0
        )
    corrected = sum(standing.values())
    text = f"{corrected} corrected since the host started" if corrected else "none"
    return find(rule, State.OK, text, place=place, sources=sources, measured=0, threshold=0)
