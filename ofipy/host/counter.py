# SPDX-License-Identifier: BSD-3-Clause
"""Counters of devices and ports, as the kernel has them in sysfs."""

from collections.abc import Iterator
from dataclasses import dataclass

from ofipy.host.meaning import Kind, find_kind, find_unit, is_saturated, scale
from ofipy.host.tree import Tree

__all__ = [
    "Counter",
    "build_counter",
    "read_aer_counters",
    "read_counters",
    "read_device_counters",
    "read_port_counters",
]

_NO_COUNTERS = frozenset(("lifespan",))  # a setting: how long the driver keeps what it has read, ms
_AER = ("correctable", "nonfatal", "fatal")


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter with its value."""

    name: str
    value: int
    """In `unit`."""
    unit: str
    """``bytes``, ``packets``, ``ticks``; empty: events."""
    kind: Kind
    saturated: bool
    """The counter stays at this value: it stands for at least so much."""
    source: str
    """The file, from the root of the tree on."""


def build_counter(name: str, raw: int, source: str) -> Counter:
    """A counter with what its name says of it."""
    return Counter(name, raw * scale(name), find_unit(name), find_kind(name), is_saturated(name, raw), source)


def read_counters(tree: Tree, folder: str) -> Iterator[Counter]:
    """Every counter of a folder; what has no number there is absent."""
    for name in tree.names(folder):
        source = f"{folder}/{name}"
        raw = tree.number(source) if name not in _NO_COUNTERS else None
        if raw is not None:
            yield build_counter(name, raw, source)


def read_port_counters(tree: Tree, folder: str) -> list[Counter]:
    """Those of a port: the standard's, the extended ones of kernels before 4.5, and the driver's own."""
    return [
        counter
        for name in ("counters", "counters_ext", "hw_counters")
        for counter in read_counters(tree, f"{folder}/{name}")
    ]


def read_device_counters(tree: Tree, folder: str) -> list[Counter]:
    """Those of a device: the driver's, and the errors that its PCI function has reported."""
    return [*read_counters(tree, f"{folder}/hw_counters"), *read_aer_counters(tree, f"{folder}/device")]


def read_aer_counters(tree: Tree, folder: str) -> Iterator[Counter]:
    """PCI's advanced error reporting of a function: lines of a name and a number, sums left out."""
    for severity in _AER:
        source = f"{folder}/aer_dev_{severity}"
        for line in (tree.text(source) or "").splitlines():
            name, _, number = line.partition(" ")
            if (
                number.strip().isdecimal()
                and number.isascii()
                and len(number) <= 20
                and not name.startswith("TOTAL")
            ):
                yield Counter(f"aer_{severity}_{name}", int(number), "", Kind.ERROR, False, source)
