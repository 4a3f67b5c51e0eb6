# SPDX-License-Identifier: BSD-3-Clause
"""Flow control of network interfaces: on which priorities it is on, what was paused, what was dropped all the same.

The kernel has none of it in files. ``dcb`` asks it for priority flow control (IEEE 802.1Qbb), ``ethtool -S`` asks the
driver for counters. Both are tools that a host may lack: what they would say is absent then.
"""

import json
import re
from typing import Any

from ofipy.host.command import command_file, read_command
from ofipy.host.counter import Counter, build_counter
from ofipy.host.network import INTERFACES
from ofipy.host.tree import Tree

__all__ = ["read_driver_counters", "read_flow_control", "read_flow_counters"]

_ETHTOOL = re.compile(r"\s*([A-Za-z0-9_.]{1,64}): ([0-9]{1,20})")
# Of hundreds: pauses, marks, drops for lack of space, and traffic by priority; no queue's own.
_FLOW = re.compile(r"pause|pfc|_xo(?:n|ff)|ecn|cnp|discard|out_of_buffer|prio[0-7]", re.IGNORECASE)
_QUEUE = re.compile(r"^(?:ch|[rt]xq?|queue|ring)_?[0-9]|queue_[0-9]|ring[0-9]")
_PRIORITIES = 8
_MOST = 1 << 64


def read_flow_control(tree: Tree, interface: str) -> tuple[int, ...] | None:
    """The priorities on which priority flow control is on; None: not known."""
    enabled = _read_pfc(tree, interface).get("prio_pfc")
    if not isinstance(enabled, list) or len(enabled) != _PRIORITIES:
        return None
    return tuple(priority for priority, on in enumerate(enabled) if on is True)


def read_flow_counters(tree: Tree, interface: str) -> list[Counter]:
    """Pause frames by priority, and what the driver says of pauses, marks and discards."""
    pfc, source = _read_pfc(tree, interface), command_file(*_pfc_words(interface))
    found = [
        build_counter(f"pfc_{name}_prio{priority}", value, source)
        for name in ("requests", "indications")
        for priority, value in enumerate(_numbers(pfc.get(name)))
    ]
    if not _is_hardware(tree, interface):
        return found
    of_driver = read_driver_counters(tree, interface)
    return [*found, *(each for each in of_driver if _FLOW.search(each.name) and not _QUEUE.search(each.name))]


def read_driver_counters(tree: Tree, interface: str) -> list[Counter]:
    """What ``ethtool -S`` prints of an interface."""
    words = ("ethtool", "-S", interface)
    lines = (read_command(tree, *words) or "").splitlines()
    matches = (_ETHTOOL.fullmatch(line) for line in lines)
    return [build_counter(match[1], int(match[2]), command_file(*words)) for match in matches if match]


def _is_hardware(tree: Tree, interface: str) -> bool:
    return tree.place(f"{INTERFACES}/{interface}/device") is not None


def _pfc_words(interface: str) -> tuple[str, ...]:
    return ("dcb", "-j", "-s", "pfc", "show", "dev", interface)


def _read_pfc(tree: Tree, interface: str) -> dict[str, Any]:
    """The document of ``dcb``; empty where there is none."""
    text = read_command(tree, *_pfc_words(interface)) if _is_hardware(tree, interface) else None
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _numbers(values: Any) -> list[int]:
    """Counters of all priorities; what is none is left out."""
    if not isinstance(values, list) or len(values) != _PRIORITIES:
        return []
    numbers = [value for value in values if type(value) is int and 0 <= value < _MOST]
    return numbers if len(numbers) == _PRIORITIES else []
