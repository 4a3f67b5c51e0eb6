# SPDX-License-Identifier: BSD-3-Clause
"""Read a host for the rules: a recorded one as it was, this one at two moments."""

import time
from collections.abc import Callable

from ofipy.doctor.host import Host, read_host, read_moment
from ofipy.doctor.record import BEFORE, RecordingTree, read_seconds
from ofipy.host.tree import Tree

__all__ = ["INTERVAL", "look"]

INTERVAL = 1.0  # seconds between both moments: drivers refresh their counters once in 10 ms to 1 s


def look(tree: Tree, meanwhile: Callable[[], None] = lambda: None) -> Host:
    """Read a host.

    Parameters
    ----------
    tree : Tree
        This host, or a recorded one.
    meanwhile : callable
        What is done between both moments of this host.

    Returns
    -------
    Host
        With two moments; a recorded one with those that it has.
    """
    if not tree.is_live:
        seconds = read_seconds(tree)
        return read_host(tree, read_moment(tree.below(BEFORE)) if seconds else None, seconds)
    before, began = read_moment(tree), time.monotonic()
    if isinstance(tree, RecordingTree):
        tree.move_before()
    meanwhile()
    if any(before.counters.values()):
        time.sleep(max(0.0, began + INTERVAL - time.monotonic()))
    return read_host(tree, before, time.monotonic() - began)
