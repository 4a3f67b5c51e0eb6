# SPDX-License-Identifier: BSD-3-Clause
"""Which process does not receive what others have sent to it: the pages of both sides, side by side."""

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ofipy.doctor.finding import Finding
from ofipy.doctor.job.processes import Look, name_process
from ofipy.doctor.peer.wire import read_number, read_text
from ofipy.doctor.rules import judge

__all__ = ["Traffic", "examine_lag", "list_traffic", "read_traffic"]

_LEAST = 10  # messages; fewer are on their way
_PEERS = 3  # a median of fewer says nothing


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one endpoint has exchanged with one peer."""

    place: str
    """Host and process."""
    name: str
    """Address of the endpoint."""
    peer: str
    sent: int
    received: int
    was_received: int
    """At the earlier moment."""

    def as_list(self) -> list[Any]:
        """For rank 0."""
        return [self.place, self.name, self.peer, self.sent, self.received, self.was_received]


def list_traffic(host: str, before: Look, now: Look) -> list[Traffic]:
    """Of every endpoint of this host with every peer."""
    found = []
    for process in now.processes:
        earlier = before.find(process)
        was = {
            (endpoint.name, peer.address): peer.messages_received
            for endpoint in (earlier.endpoints if earlier is not None else ())
            for peer in endpoint.peers
        }
        for endpoint in process.endpoints:
            for peer in endpoint.peers:
                key = endpoint.name, peer.address
                if endpoint.name and key in was:
                    place = f"{host} {name_process(process)}"
                    found.append(Traffic(place, *key, peer.messages_sent, peer.messages_received, was[key]))
    return found


def read_traffic(said: Any) -> list[Traffic]:
    """What another host has told."""
    found = []
    for each in said if isinstance(said, list) else []:
        if not isinstance(each, list) or len(each) != 6:
            continue
        row: dict[str, Any] = {str(index): value for index, value in enumerate(each)}
        sent, received, was = (int(read_number(row, index) or 0) for index in "345")
        found.append(
            Traffic(read_text(row, "0"), read_text(row, "1"), read_text(row, "2"), sent, received, was)
        )
    return found


def examine_lag(traffic: Iterable[Traffic]) -> Iterator[Finding]:
    """Compare, for each sender, what each of its peers has not received. Who still receives is not behind."""
    rows = list(traffic)
    received = {(row.peer, row.name): row for row in rows}
    worst: dict[str, tuple[float, str]] = {}
    for name in dict.fromkeys(row.name for row in rows):
        lags = [
            (max(0, row.sent - other.received), row, other)
            for row in rows
            if row.name == name and (other := received.get((row.name, row.peer))) is not None
        ]
        if len(lags) < _PEERS:
            continue
        middle = max(1.0, statistics.median(lag for lag, _, _ in lags))
        for lag, row, other in lags:
            if lag < _LEAST or other.received > other.was_received:
                continue
            text = f"{lag} messages of {row.place} are not received; the median of its peers is {middle:g}"
            worst[other.place] = max(worst.get(other.place, (0.0, "")), (lag / middle, text))
    for place, (ratio, text) in worst.items():
        yield judge("app.peer_lag", ratio, text, place=place, sources=("statistics pages of both",))
