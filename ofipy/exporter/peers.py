# SPDX-License-Identifier: BSD-3-Clause
"""The busiest peers. A host may have thousands; so many have series of their own, and the others have one together.

Each message counts in one series only, and no series falls. A peer that gets a series of its own begins there at 0;
what it has counted before stays in the series of the others. A peer loses its series when another needs the place:
first one that is gone, then one that has moved less than half as much. Halves keep two peers from taking turns.
"""

import functools
import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ofipy.exporter.totals import Programs, by_provider
from ofipy.statistics import Peer, Snapshot

__all__ = ["OTHER", "BusiestPeers", "PeerKey", "Traffic"]

OTHER = "other"
PeerKey = tuple[str, str, str, str]
"""Program, provider, address, way."""
Traffic = tuple[int, int, int, int, int]
"""Messages sent and received, bytes sent and received, errors."""
_NOTHING: Traffic = (0, 0, 0, 0, 0)


class BusiestPeers:
    """Peers with series of their own, and the sums of all others."""

    def __init__(self, limit: int, programs: Programs) -> None:
        self._limit = limit
        self._programs = programs
        self.series: dict[PeerKey, Traffic] = {}
        """Rows; the address of a sum of others is :data:`OTHER`."""
        self._named: set[PeerKey] = set()
        self._moved: Counter[PeerKey] = Counter()  # bytes of each peer that is there
        self._highest: dict[tuple[object, ...], Traffic] = {}  # of each endpoint's peer

    def update(self, snapshot: Snapshot) -> None:
        """Add what has been exchanged since the last time.

        Parameters
        ----------
        snapshot : Snapshot
            What the endpoints of processes have exchanged with their peers.
        """
        grown = self._measure_growth(snapshot)
        self._moved = Counter({key: self._moved[key] + sum(grown[key][2:4]) for key in grown})
        self._choose()
        for (program, provider, address, way), growth in grown.items():
            key = (program, provider, address, way)
            if key not in self._named:
                key = (program, provider, OTHER, way)
            self.series[key] = add(self.series.get(key, _NOTHING), growth)

    def dump(self) -> dict[str, Any]:
        """All sums, and what growth is measured from, as a document."""
        return {
            "series": list(self.series.items()),
            "named": list(self._named),
            "moved": list(self._moved.items()),
            "highest": list(self._highest.items()),
        }

    def load(self, document: dict[str, Any], *, same_processes: bool) -> None:
        """Go on with what `dump` has returned.

        Parameters
        ----------
        document : dict
            What an earlier exporter has saved.
        same_processes : bool
            Whether pids and start times still name the same processes.
        """
        self.series = {read_key(key): read_traffic(traffic) for key, traffic in document["series"]}
        self._named = {read_key(key) for key in document["named"][: self._limit]}
        for key in [key for key in self.series if key not in self._named and key[2] != OTHER]:
            del self.series[key]  # there may be fewer than the earlier exporter had
        self._moved = Counter({read_key(key): int(moved) for key, moved in document["moved"]})
        if same_processes:
            self._highest = {tuple(place): read_traffic(traffic) for place, traffic in document["highest"]}

    def _measure_growth(self, snapshot: Snapshot) -> dict[PeerKey, Traffic]:
        """Compare with the last time. Every peer that is there has an entry.

        The counts of a peer that was removed, or whose endpoint was closed, move to a sum of its page. So what the
        peers that are there have not counted of a process's growth is that of the others.
        """
        before, self._highest = self._highest, {}
        grown: dict[PeerKey, Traffic] = {}

        def measure(identity: tuple[object, ...], now: Traffic) -> Traffic:
            then = before.get(identity, _NOTHING)
            self._highest[identity] = highest(then, now)
            return subtract(self._highest[identity], then)

        for process in snapshot.processes:
            program = self._programs.name(process.program)
            for provider, endpoints in by_provider(process):
                left = measure(
                    (process.pid, process.start_time, provider),
                    sum_of(traffic_of(peer) for endpoint in endpoints for peer in endpoint.peers),
                )
                for endpoint in endpoints:
                    place = (process.pid, process.start_time, endpoint.number, endpoint.opened)
                    for peer in endpoint.peers:
                        if peer.address != OTHER:
                            growth = measure((*place, peer.address, peer.way), traffic_of(peer))
                            key = (program, provider, peer.address, peer.way)
                            grown[key] = add(grown.get(key, _NOTHING), growth)
                            left = subtract(left, growth)
                if any(each > 0 for each in left):
                    key = (program, provider, OTHER, "")
                    grown[key] = add(grown.get(key, _NOTHING), highest(left, _NOTHING))
        return grown

    def _choose(self) -> None:
        """Give series to the busiest peers."""
        waiting = [key for key in self._moved if key not in self._named and key[2] != OTHER]
        for key in heapq.nlargest(self._limit, waiting, key=self._moved.__getitem__):
            if len(self._named) >= self._limit:
                least = min(self._named, key=lambda each: self._moved.get(each, -1))
                if least in self._moved and self._moved[key] <= 2 * self._moved[least]:
                    return
                self._named.remove(least)
                self.series.pop(least, None)
            self._named.add(key)


def read_key(key: Sequence[Any]) -> PeerKey:
    """A key out of a document, where it is a list."""
    program, provider, address, way = map(str, key)
    return (program, provider, address, way)


def read_traffic(numbers: Sequence[Any]) -> Traffic:
    """What has been exchanged, out of a document."""
    sent, received, bytes_sent, bytes_received, errors = map(int, numbers)
    return (sent, received, bytes_sent, bytes_received, errors)


def traffic_of(peer: Peer) -> Traffic:
    """What has been exchanged with a peer."""
    return (peer.messages_sent, peer.messages_received, peer.bytes_sent, peer.bytes_received, peer.errors)


def sum_of(found: Iterable[Traffic]) -> Traffic:
    """The sum of any number of them."""
    return functools.reduce(add, found, _NOTHING)


def add(one: Traffic, other: Traffic) -> Traffic:
    """The sum."""
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3], one[4] + other[4])


def subtract(one: Traffic, other: Traffic) -> Traffic:
    """The difference."""
    return (one[0] - other[0], one[1] - other[1], one[2] - other[2], one[3] - other[3], one[4] - other[4])


def highest(one: Traffic, other: Traffic) -> Traffic:
    """The higher of each number: a page may be read half written."""
    return (
        max(one[0], other[0]),
        max(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
        max(one[4], other[4]),
    )
