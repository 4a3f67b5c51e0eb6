# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy info --filter``: providers' infos by the device behind them, as the host describes it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import click

from ofipy._discovery.info import Explanation, Info
from ofipy.host.device import list_devices, read_device
from ofipy.host.network import read_interface
from ofipy.host.tree import Tree

__all__ = ["keep_fitting", "parse_filters"]

NAMES = ("domain", "link_layer", "numa_node")


def parse_filters(
    _context: click.Context, _parameter: click.Parameter, values: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    """Split each NAME=VALUE of ``--filter``.

    Raises
    ------
    click.BadParameter
        When it is none, or nothing has that name.
    """
    return tuple(parse_filter(value) for value in values)


def parse_filter(text: str) -> tuple[str, str]:
    """Split one."""
    name, equals, wanted = text.partition("=")
    if not equals or name not in NAMES:
        raise click.BadParameter(f"{text}: NAME=VALUE is meant, with {', '.join(NAMES)} as the name")
    if name == "numa_node" and not (wanted.isascii() and wanted.isdecimal()):
        raise click.BadParameter(f"{text}: a node is a number from 0 on")
    return name, wanted


def keep_fitting(
    explanations: Iterable[Explanation], filters: Sequence[tuple[str, str]], tree: Tree
) -> list[Explanation]:
    """The same with only those infos that fit every filter; where none is left, the reason says so.

    An info whose device does not say what is asked for fits no filter of that name.
    """
    wanted = ", ".join(f"{name}={value}" for name, value in filters)
    kept = []
    for each in explanations:
        infos = tuple(info for info in each.infos if fits(info, filters, tree))
        reason = each.reason if infos or not each.infos else f"no info with {wanted}"
        kept.append(replace(each, infos=infos, reason=reason))
    return kept


def fits(info: Info, filters: Sequence[tuple[str, str]], tree: Tree) -> bool:
    """Whether an info fits every filter."""
    facts = facts_of(info, tree)
    return all(facts.get(name, "").casefold() == value.casefold() for name, value in filters)


def facts_of(info: Info, tree: Tree) -> dict[str, str]:
    """What can be filtered by: the domain, and what the host says of the device or interface of that name."""
    facts: dict[str, str | int | None] = {"domain": info.domain}
    name, _, number = info.domain.removesuffix("-ipv6").partition(":")
    if name in list_devices(tree):
        device = read_device(tree, name)
        layers = [port.link_layer for port in device.ports if number in ("", str(port.number))]
        facts["numa_node"] = device.bus.numa_node if device.bus is not None else None
        facts["link_layer"] = layers[0] if layers else None
    elif (interface := read_interface(tree, name)) is not None:
        facts["numa_node"] = interface.numa_node
        facts["link_layer"] = interface.link_layer
    return {name: str(value) for name, value in facts.items() if value is not None}
