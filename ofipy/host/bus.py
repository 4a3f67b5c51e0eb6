# SPDX-License-Identifier: BSD-3-Clause
"""Where a device sits: its PCI links up to the root, its NUMA node, its processors, its temperatures."""

import re
from dataclasses import dataclass

from ofipy.host.tree import Tree

__all__ = ["Bus", "PcieLink", "Temperature", "is_degraded", "read_bus", "read_link"]

_FUNCTION = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,2})?) GT/s")
_MOST_LANES = 32


@dataclass(frozen=True, slots=True)
class PcieLink:
    """One PCI Express link, as the function below it reports it."""

    function: str
    speed: float | None
    """Gigatransfers a second of each lane, now."""
    width: int | None
    """Lanes, now."""
    max_speed: float | None
    max_width: int | None

    @property
    def gigabits(self) -> float | None:
        """What it carries after line coding, Gb/s: 8b/10b up to 5 GT/s, 128b/130b up to 32, flits from 64 on."""
        if self.speed is None or self.width is None:
            return None
        coding = 8 / 10 if self.speed <= 5 else 128 / 130 if self.speed <= 32 else 242 / 256
        return round(self.speed * self.width * coding, 1)


@dataclass(frozen=True, slots=True)
class Temperature:
    """One sensor."""

    label: str
    celsius: float
    critical: float | None


@dataclass(frozen=True, slots=True)
class Bus:
    """The place of a device in its host."""

    function: str | None
    """PCI address; None: it is on another bus."""
    numa_node: int | None
    processors: str | None
    """Those near it, as the kernel lists them: ``0-15,32-47``."""
    links: tuple[PcieLink, ...]
    """From the device up to the root."""
    temperatures: tuple[Temperature, ...]

    @property
    def gigabits(self) -> float | None:
        """What the narrowest link on the way to the root carries, Gb/s."""
        return min((rate for link in self.links if (rate := link.gigabits) is not None), default=None)


def read_bus(tree: Tree, folder: str) -> Bus | None:
    """The place of a device, None for a device of software.

    Parameters
    ----------
    tree : Tree
        The host.
    folder : str
        The device's own, such as ``sys/class/infiniband/mlx5_0/device``.
    """
    place = tree.place(folder)
    if place is None:
        return None
    parts = place.split("/")
    functions = [depth for depth, part in enumerate(parts) if _FUNCTION.fullmatch(part)]
    links = (read_link(tree, "/".join(parts[: depth + 1]), parts[depth]) for depth in reversed(functions))
    node = tree.number(f"{folder}/numa_node")
    return Bus(
        function=parts[functions[-1]] if functions else None,
        numa_node=node if node is not None and node >= 0 else None,
        processors=tree.line(f"{folder}/local_cpulist"),
        links=tuple(link for link in links if link is not None),
        temperatures=tuple(read_temperatures(tree, f"{folder}/hwmon")),
    )


def read_link(tree: Tree, folder: str, function: str) -> PcieLink | None:
    """The link above a function, None where it reports none: a virtual function, or one inside the root."""
    found = [read_speed(tree.line(f"{folder}/{which}_link_speed")) for which in ("current", "max")]
    widths = [read_width(tree.number(f"{folder}/{which}_link_width")) for which in ("current", "max")]
    if found[0] is None and widths[0] is None:
        return None
    return PcieLink(function, found[0], widths[0], found[1], widths[1])


def is_degraded(lower: PcieLink, upper: PcieLink) -> bool:
    """Whether a link is slower or narrower than both its ends can do. False: an end does not say what it can do."""
    speeds = [end.max_speed for end in (lower, upper) if end.max_speed is not None]
    widths = [end.max_width for end in (lower, upper) if end.max_width is not None]
    slow = len(speeds) == 2 and lower.speed is not None and lower.speed < min(speeds)
    narrow = len(widths) == 2 and lower.width is not None and lower.width < min(widths)
    return slow or narrow


def read_speed(text: str | None) -> float | None:
    """Gigatransfers a second out of ``16.0 GT/s PCIe``."""
    match = _SPEED.match(text or "")
    return float(match[1]) if match else None


def read_width(lanes: int | None) -> int | None:
    """Lanes. 0, and 63 and 255 of functions without a link, are no width."""
    return lanes if lanes is not None and 0 < lanes <= _MOST_LANES else None


def read_temperatures(tree: Tree, folder: str) -> list[Temperature]:
    """Every sensor of a device. The kernel tells thousandths of a degree."""
    found = []
    for monitor in tree.names(folder):
        for name in tree.names(f"{folder}/{monitor}"):
            sensor = re.fullmatch(r"(temp[0-9]{1,3})_input", name)
            value = tree.number(f"{folder}/{monitor}/{name}") if sensor else None
            if sensor and value is not None:
                base = f"{folder}/{monitor}/{sensor[1]}"
                limit = tree.number(f"{base}_crit")
                label = tree.line(f"{base}_label") or sensor[1]
                found.append(Temperature(label, value / 1000, limit / 1000 if limit is not None else None))
    return found
