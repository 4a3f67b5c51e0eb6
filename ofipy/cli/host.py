# SPDX-License-Identifier: BSD-3-Clause
"""What commands that look at a host share: its tree, and devices by name."""

from collections.abc import Sequence

import click

from ofipy.cli.support import CommandError, ExitCode
from ofipy.host.device import DEVICES, list_devices
from ofipy.host.tree import Tree

__all__ = ["NO_DEVICE", "choose_device", "open_tree"]

NO_DEVICE = (
    f"this machine has no RDMA device (/{DEVICES} is empty); any Ethernet interface can be one: "
    "rdma link add rxe0 type rxe netdev eth0"
)


def open_tree(root: str | None) -> Tree:
    """The tree that ``--root`` names, or this host's.

    Raises
    ------
    CommandError
        When the root cannot be opened.
    """
    try:
        return Tree(root if root is not None else "/")
    except OSError as error:
        raise CommandError(f"{root}: {error.strerror}") from error


def choose_device(tree: Tree, place: str, others: Sequence[str] = ()) -> tuple[str, int | None]:
    """The device and port that DEVICE or DEVICE/PORT names.

    Parameters
    ----------
    tree : Tree
        The host.
    place : str
        What was asked for.
    others : sequence of str
        Names that would have been right, too.

    Raises
    ------
    click.UsageError
        When the port is no number.
    CommandError
        When there is no such device or port.
    """
    device, slash, number = place.partition("/")
    if slash and not (number.isascii() and number.isdecimal()):
        raise click.UsageError(f"{place}: a port is a number, as in mlx5_0/1")
    devices = list_devices(tree)
    if device not in devices:
        there = ", ".join((*devices, *others)) or "none"
        raise CommandError(f"there is no device {device}; there are: {there}", code=ExitCode.NO_PROVIDER)
    ports = tree.names(f"{DEVICES}/{device}/ports")
    if slash and number not in ports:
        there = ", ".join(ports) or "none"
        raise CommandError(f"{device} has no port {number}; it has: {there}", code=ExitCode.NO_PROVIDER)
    return device, int(number) if slash else None
