# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy counters``: what devices, ports, network interfaces and TCP have counted, once or again and again."""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from ofipy.cli.host import choose_device
from ofipy.cli.look import looking
from ofipy.cli.support import data_console, print_json, status_console
from ofipy.cli.tables import print_table
from ofipy.host.counter import Counter, read_device_counters, read_port_counters
from ofipy.host.device import DEVICES, list_devices, read_device
from ofipy.host.flow import read_flow_counters
from ofipy.host.meaning import Kind
from ofipy.host.network import list_interfaces, read_interface, read_interface_counters, read_tcp_counters
from ofipy.host.tree import Tree

__all__ = ["Group", "Selection", "collect", "show_counters"]

SCHEMA = 1
STYLES = {Kind.ERROR: "red", Kind.CONGESTION: "yellow"}


@dataclass(frozen=True, slots=True)
class Group:
    """The counters of one place."""

    kind: str
    """``device``, ``port``, ``interface`` or ``tcp``."""
    name: str
    port: int | None
    counters: tuple[Counter, ...]

    @property
    def title(self) -> str:
        """What people call the place."""
        return f"{self.name}/{self.port}" if self.port is not None else self.name


@dataclass(frozen=True, slots=True)
class Selection:
    """Which counters are shown."""

    errors: bool
    nonzero: bool

    def fits(self, counter: Counter) -> bool:
        """Whether one of them is."""
        return (counter.kind is Kind.ERROR or not self.errors) and (counter.value > 0 or not self.nonzero)


def show_counters(
    *,
    root: str | None,
    host: str | None,
    place: str | None,
    selection: Selection,
    watch: float | None,
    number: int | None,
    as_json: bool,
) -> None:
    """Print counters.

    Parameters
    ----------
    root : str, optional
        A recorded tree; None: this host.
    host : str, optional
        Another host, on which a server of ``ofipy doctor`` runs.
    place : str, optional
        Only those of a device, a port as DEVICE/PORT, or an interface.
    selection : Selection
        Which counters.
    watch : float, optional
        Print again after so many seconds, with what has changed.
    number : int, optional
        End after so many prints; None: never, if `watch` is given.
    as_json : bool
        Documents, one a line with `watch`.

    Raises
    ------
    CommandError
        When there is no such device, port or interface.
    """
    rounds = itertools.count() if watch is not None and number is None else range(number or 1)
    with looking(root, host) as look:
        show_rounds(look, place, selection, watch, rounds, as_json=as_json)


def show_rounds(
    look: Callable[[], Tree],
    place: str | None,
    selection: Selection,
    watch: float | None,
    rounds: Iterable[int],
    *,
    as_json: bool,
) -> None:
    """Print counters in each round: totals in the first one, then what has changed."""
    before: dict[str, Counter] | None = None
    then = time.monotonic()
    for turn in rounds:
        if turn and watch is not None:
            time.sleep(watch)
        groups = collect(look(), place)
        now = time.monotonic()
        if as_json:
            document = describe(groups, selection, before, now - then)
            print_json(document) if watch is None else click.echo(json.dumps(document))
        elif before is None:
            show_totals(groups, selection)
        else:
            show_changes(groups, selection, before, now - then)
        before, then = {identity(each): each for group in groups for each in group.counters}, now


def collect(tree: Tree, place: str | None) -> list[Group]:
    """The counters of a place, or of all places.

    Raises
    ------
    CommandError
        When there is no such place.
    """
    if place is None:
        devices = [group for name in list_devices(tree) for group in collect_device(tree, name, None)]
        interfaces = [collect_interface(tree, name) for name in list_interfaces(tree)]
        return [*devices, *interfaces, Group("tcp", "tcp", None, tuple(read_tcp_counters(tree)))]
    if read_interface(tree, place) is not None:
        return [collect_interface(tree, place)]
    others = list_interfaces(tree, loopback=True)
    device, port = choose_device(tree, place, others)
    return list(collect_device(tree, device, port))


def collect_device(tree: Tree, name: str, port: int | None) -> Iterator[Group]:
    """Those of a device and its ports, or of one port alone."""
    folder = f"{DEVICES}/{name}"
    if port is None:
        yield Group("device", name, None, tuple(read_device_counters(tree, folder)))
    for each in read_device(tree, name).ports:
        if port in (None, each.number):
            found = read_port_counters(tree, f"{folder}/ports/{each.number}")
            yield Group("port", name, each.number, tuple(found))


def collect_interface(tree: Tree, name: str) -> Group:
    """Those of one interface."""
    found = (*read_interface_counters(tree, name), *read_flow_counters(tree, name))
    return Group("interface", name, None, found)


def identity(counter: Counter) -> str:
    """What a counter is found again by."""
    return f"{counter.source} {counter.name}"


def find_change(counter: Counter, before: dict[str, Counter] | None) -> int | None:
    """How much a counter has grown; None: not known, because it is new, started again, or counts what there is now."""
    old = before.get(identity(counter)) if before is not None else None
    if old is None or counter.kind is Kind.LEVEL or counter.value < old.value:
        return None
    return counter.value - old.value


def describe(
    groups: Sequence[Group], selection: Selection, before: dict[str, Counter] | None, elapsed: float
) -> dict[str, Any]:
    """The document."""

    def rows(group: Group) -> list[dict[str, Any]]:
        return [
            {
                "name": each.name,
                "value": each.value,
                "unit": each.unit,
                "kind": each.kind,
                "saturated": each.saturated,
                "delta": find_change(each, before),
                "source": each.source,
            }
            for each in group.counters
            if selection.fits(each)
        ]

    names = dict.fromkeys(group.name for group in groups if group.kind in ("device", "port"))
    return {
        "schema": SCHEMA,
        "seconds": round(elapsed, 6) if before is not None else None,
        "devices": [
            {
                "name": name,
                "counters": [
                    row
                    for group in groups
                    if (group.kind, group.name) == ("device", name)
                    for row in rows(group)
                ],
                "ports": [
                    {"number": group.port, "counters": rows(group)}
                    for group in groups
                    if (group.kind, group.name) == ("port", name)
                ],
            }
            for name in names
        ],
        "interfaces": [
            {"name": group.name, "counters": rows(group)} for group in groups if group.kind == "interface"
        ],
        "tcp": [row for group in groups if group.kind == "tcp" for row in rows(group)],
    }


def new_table(title: str, *headings: str) -> Table:
    """A table of one place: a name, and numbers."""
    table = Table(title=title, title_justify="left")
    table.add_column("counter", no_wrap=True)
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("unit", no_wrap=True)
    return table


def show_totals(groups: Sequence[Group], selection: Selection) -> None:
    """A table for each place that has something to show."""
    shown = 0
    for group in groups:
        fitting = [each for each in group.counters if selection.fits(each)]
        if fitting:
            table = new_table(group.title, "value")
            for each in fitting:
                table.add_row(name_of(each), value_of(each), each.unit)
            print_table(data_console(), table)
        elif not group.counters and group.kind == "port":
            status_console().print(f"{group.title} has no counters that its driver tells")
        shown += len(fitting)
    if not shown:
        status_console().print("no counter is to be shown")


def show_changes(
    groups: Sequence[Group], selection: Selection, before: dict[str, Counter], elapsed: float
) -> None:
    """A table for each place where something has changed."""
    changed = False
    for group in groups:
        table = new_table(group.title, "value", "change", "per second")
        for each in group.counters:
            change = find_change(each, before)
            if change and selection.fits(each):
                table.add_row(
                    name_of(each), value_of(each), f"+{change}", f"{change / elapsed:.4g}", each.unit
                )
        if table.row_count:
            changed = True
            print_table(data_console(), table)
    if not changed:
        status_console().print(f"nothing has changed in {elapsed:.3g} s")


def name_of(counter: Counter) -> Text:
    """The name, in the colour of what it counts if it has counted something."""
    return Text(counter.name, STYLES.get(counter.kind, "") if counter.value else "")


def value_of(counter: Counter) -> str:
    """The value; one at which the counter stays stands for at least so much."""
    return f"≥ {counter.value}" if counter.saturated else str(counter.value)
