# SPDX-License-Identifier: BSD-3-Clause
"""Rows of processes, out of the sums of what they have counted."""

import math
from collections import Counter

from ofipy.exporter import process_families as families
from ofipy.exporter.family import Distribution, Rows
from ofipy.exporter.peers import BusiestPeers
from ofipy.exporter.totals import BYTES, SIZE, Group, Key, Totals

__all__ = ["add_peers", "add_totals"]

_CLASSES = range(5, 30, 3)
"""Sizes after which a bucket ends, as powers of two: 63 bytes, 511, 4,095 and so on up to 1 GiB less one byte."""


def add_totals(rows: Rows, totals: Totals) -> None:
    """Add the sums, and what is so now."""
    for group, counts in totals.counts.items():
        for name, (family, labels) in families.COUNTERS.items():
            rows.offer(family, (*group, *labels), counts.get((name,)))
        add_messages(rows, group, counts)
    for group, levels in totals.levels.items():
        rows.add(families.ENDPOINTS, group, levels.endpoints)
        rows.add(families.STALLED, group, levels.stalled)
        for name, family in families.LEVELS.items():
            rows.offer(family, group, levels.of.get(name))


def add_messages(rows: Rows, group: Group, counts: Counter[Key]) -> None:
    """Add messages by protocol, and by size."""
    sizes: dict[str, Counter[int]] = {}
    payload: Counter[str] = Counter()
    messages: Counter[tuple[str, str]] = Counter()
    for key, value in counts.items():
        if key[0] == SIZE:
            _, direction, protocol, number = key
            messages[direction, protocol] += value
            sizes.setdefault(direction, Counter())[int(number)] += value
        elif key[0] == BYTES:
            _, direction, protocol = key
            payload[direction] += value
            rows.add(families.MESSAGE_BYTES, (*group, direction, protocol), value)
    for (direction, protocol), value in messages.items():
        rows.add(families.MESSAGES, (*group, direction, protocol), value)
    for direction, found in sizes.items():
        rows.add(families.MESSAGE_SIZES, (*group, direction), distribute(found, payload[direction]))


def distribute(sizes: Counter[int], payload: int) -> Distribution:
    """The histogram of messages whose sizes are counted by powers of two."""
    bounds = [
        (2.0 ** (last + 1) - 1, sum(value for number, value in sizes.items() if number <= last))
        for last in _CLASSES
    ]
    return Distribution((*bounds, (math.inf, sizes.total())), payload)


def add_peers(rows: Rows, peers: BusiestPeers) -> None:
    """Add the busiest peers, and the sum of the others."""
    for key, (sent, received, bytes_sent, bytes_received, errors) in peers.series.items():
        rows.add(families.PEER_MESSAGES, (*key, "sent"), sent)
        rows.add(families.PEER_MESSAGES, (*key, "received"), received)
        rows.add(families.PEER_BYTES, (*key, "sent"), bytes_sent)
        rows.add(families.PEER_BYTES, (*key, "received"), bytes_received)
        rows.add(families.PEER_ERRORS, key, errors)
