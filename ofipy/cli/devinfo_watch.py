# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy devinfo --watch``: what becomes of devices, ports and interfaces, a line for each change.

The values are read again and again, so a port that goes down and up between two looks is not seen. Its counter
``link_downed`` tells.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from ofipy.cli.support import status_console
from ofipy.host.tree import Tree

__all__ = ["find_changes", "flatten", "watch_devices"]

# What changes without an event.
_MEASURED = frozenset(("retries", "temperatures"))
_SCHEMA = 1
Values = dict[tuple[str, str], Any]


def watch_devices(
    look: Callable[[], Tree],
    describe: Callable[[Tree], Sequence[dict[str, Any]]],
    *,
    seconds: float,
    number: int | None,
    as_json: bool,
) -> None:
    """Print changes until Ctrl-C.

    Parameters
    ----------
    look : callable
        Returns the host as it is now.
    describe : callable
        Returns its devices, as the document of ``ofipy devinfo`` has them.
    seconds : float
        Between two looks.
    number : int, optional
        End after so many looks; None: never.
    as_json : bool
        Print a document a line, in which times are seconds since 1970.
    """
    before = flatten(describe(look()))
    places = len(dict.fromkeys(place for place, _ in before))
    status_console().print(f"watching {places} devices, ports and interfaces")
    for _ in itertools.count() if number is None else range(number):
        time.sleep(seconds)
        now, at = flatten(describe(look())), time.time()
        for place, name, old, new in find_changes(before, now):
            if as_json:
                change = {"place": place, "name": name, "from": old, "to": new}
                click.echo(json.dumps({"schema": _SCHEMA, "time": round(at, 3), **change}))
            else:
                clock = time.strftime("%H:%M:%S", time.localtime(at))
                click.echo(f"{clock} {place} {name}: {say(name, old)} → {say(name, new)}")
        before = now


def flatten(devices: Sequence[Mapping[str, Any]]) -> Values:
    """Values by place and name. A device, a port and an interface are places."""
    found: Values = {}
    for device in devices:
        name = device["name"]
        found |= pairs(name, "", device, leave=("ports", "interfaces"))
        for interface in device["interfaces"]:
            found |= pairs(interface["name"], "", interface)
        for port in device["ports"]:
            found |= pairs(f"{name}/{port['number']}", "", port)
    return found


def pairs(place: str, prefix: str, value: Mapping[str, Any], leave: Sequence[str] = ()) -> Values:
    """The values of an object, those of objects within it, and those of lists of objects by their first member."""
    found: Values = {}
    for key, each in value.items():
        if key in _MEASURED or key in leave:
            continue
        if isinstance(each, Mapping):
            found |= pairs(place, f"{prefix}{key} ", each)
        elif isinstance(each, (list, tuple)) and each and isinstance(each[0], Mapping):
            for item in each:
                own, *rest = item.items()
                found |= pairs(place, f"{prefix}{key} {own[1]} ", dict(rest))
        else:
            found[place, f"{prefix}{key}"] = each
    return found


def find_changes(before: Values, now: Values) -> Iterator[tuple[str, str, Any, Any]]:
    """Place, name, old and new value of what has changed. A place that came or went is one change, with no value."""
    old, new = ({place: None for place, _ in values} for values in (before, now))
    for place in old.keys() ^ new.keys():
        yield place, "presence", place in old, place in new
    for place, name in dict.fromkeys((*before, *now)):
        values = before.get((place, name)), now.get((place, name))
        if place in old and place in new and values[0] != values[1]:
            yield place, name, *values


def say(name: str, value: Any) -> str:
    """A value for people."""
    if name == "presence":
        return "there" if value else "gone"
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value)) or "none"
    return {None: "none", True: "yes", False: "no"}.get(value, str(value))
