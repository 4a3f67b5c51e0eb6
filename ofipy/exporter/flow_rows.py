# SPDX-License-Identifier: BSD-3-Clause
"""Rows of flow control: priorities, pause frames, time without a right to send.

Drivers name the same counters differently. Pause frames come from ``dcb`` if the driver answers it, or else from the
driver's own counters. The others of a driver are events by name, of which an interface has a bounded number.
"""

import re
from collections.abc import Mapping

from ofipy.exporter import device_families as families
from ofipy.exporter.family import Rows
from ofipy.host.flow import read_flow_control, read_flow_counters
from ofipy.host.meaning import Kind
from ofipy.host.tree import Tree

__all__ = ["MOST_EVENTS", "add_flow_control"]

MOST_EVENTS = 128
"""Series of one interface whose names are the driver's."""
_DIRECTIONS = {"requests": "sent", "tx": "sent", "indications": "received", "rx": "received"}
_DCB = re.compile(r"pfc_(requests|indications)_prio([0-7])")
# mlx5, bnxt_en and ice; i40e has its in the folder `port` of its names.
_FRAMES = re.compile(
    r"(?:port\.)?(rx|tx)_(?:prio([0-7])_pause|pfc_ena_frames_pri([0-7])|priority_([0-7])_xoff(?:\.nic|_[rt]x)?)"
)
_PAUSED = re.compile(r"(rx|tx)_(?:prio([0-7])|global)_pause_duration")  # mlx5, microseconds
_MICROSECONDS = 1e-6


def add_flow_control(rows: Rows, tree: Tree, interface: str) -> None:
    """Add what is known of an interface's flow control; what is not known has no row."""
    enabled = read_flow_control(tree, interface)
    if enabled is not None:
        for priority in range(8):
            rows.add(families.PFC, (interface, str(priority)), float(priority in enabled))
    counters = {each.name: each for each in read_flow_counters(tree, interface)}
    values = {name: each.value for name, each in counters.items()}
    of_dcb, of_driver = find_frames(_DCB, values), find_frames(_FRAMES, values)
    for labels, value in (of_dcb or of_driver).items():
        rows.add(families.PFC_FRAMES, (interface, *labels), value)
    for labels, value in find_frames(_PAUSED, values).items():
        rows.add(families.PAUSED, (interface, *labels), value * _MICROSECONDS)
    others = [
        name
        for name, each in counters.items()
        if each.kind in (Kind.CONGESTION, Kind.ERROR)
        and not any(known.fullmatch(name) for known in (_DCB, _FRAMES, _PAUSED))
    ]
    for name in others[:MOST_EVENTS]:
        rows.add(families.FLOW_EVENTS, (interface, name), values[name])


def find_frames(known: re.Pattern[str], values: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Values of the counters with such a name, by priority, empty for all of them, and direction."""
    return {
        (next(filter(None, match.groups()[1:]), ""), _DIRECTIONS[match[1]]): value
        for name, value in values.items()
        if (match := known.fullmatch(name))
    }
