# SPDX-License-Identifier: BSD-3-Clause
"""Rates between two moments: rows of processes, endpoints, peers and ports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from ofipy.statistics import Endpoint, Peer, Process
from ofipy.top.sample import PortCount, Sample

__all__ = [
    "SORT_KEYS",
    "EndpointRow",
    "PeerRow",
    "PortRow",
    "ProcessRow",
    "Rates",
    "Screen",
    "Traffic",
    "find_rates",
]

SORT_KEYS = ("bytes", "messages", "errors", "pending", "unexpected", "name")
Row = TypeVar("Row", "ProcessRow", "EndpointRow", "PeerRow", "PortRow")
_REMOTE = ("reads", "writes", "atomics")


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second."""

    sends: float
    receives: float
    remote: float
    """Reads, writes and atomics of remote memory."""
    bytes_sent: float
    bytes_received: float
    errors: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """What all rows are sorted by, each as far as it has it."""

    bytes: float
    messages: float
    errors: float
    pending: int
    unexpected: int
    name: str


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process."""

    pid: int
    program: str
    job: str
    rank: int | None
    endpoints: int
    rates: Rates
    pending: int
    unexpected: int

    @property
    def traffic(self) -> Traffic:
        """What it is sorted by."""
        return traffic_of(self.rates, self.pending, self.unexpected, f"{self.program} {self.pid:010}")


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint that is open."""

    pid: int
    number: int
    provider: str
    name: str
    protocol: str | None
    """The one that carried the most messages between the two moments; None: there was no message."""
    rates: Rates
    pending: int
    unexpected: int

    @property
    def traffic(self) -> Traffic:
        """What it is sorted by."""
        return traffic_of(self.rates, self.pending, self.unexpected, self.name)


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer of an endpoint."""

    pid: int
    endpoint: int
    address: str
    way: str
    sends: float
    receives: float
    bytes_sent: float
    bytes_received: float
    errors: float

    @property
    def traffic(self) -> Traffic:
        """What it is sorted by."""
        moved, messages = self.bytes_sent + self.bytes_received, self.sends + self.receives
        return Traffic(moved, messages, self.errors, 0, 0, self.address)


@dataclass(frozen=True, slots=True)
class PortRow:
    """A port of an RDMA device; None: its driver does not count it."""

    device: str
    port: int
    state: str | None
    rate: str | None
    bytes_sent: float | None
    bytes_received: float | None
    errors: float
    congestion: float
    retries: float

    @property
    def traffic(self) -> Traffic:
        """What it is sorted by."""
        moved = (self.bytes_sent or 0) + (self.bytes_received or 0)
        return Traffic(moved, 0, self.errors, 0, 0, f"{self.device}/{self.port}")


@dataclass(frozen=True, slots=True)
class Screen:
    """Everything that is shown at once."""

    seconds: float
    """Between the two moments."""
    processes: tuple[ProcessRow, ...]
    endpoints: tuple[EndpointRow, ...]
    peers: tuple[PeerRow, ...]
    ports: tuple[PortRow, ...]
    unreadable: int


def find_rates(before: Sample, now: Sample, sort: str, most_peers: int | None = None) -> Screen:
    """Compare two moments.

    Parameters
    ----------
    before, now : Sample
        The moments. What is new in the second one has begun at 0.
    sort : str
        One of `SORT_KEYS`: the highest first, names in their order.
    most_peers : int, optional
        Peers, at most: the first ones of that order. None: all.
    """
    seconds = max(now.time - before.time, 1e-9)
    processes: list[ProcessRow] = []
    endpoints: list[EndpointRow] = []
    peers: list[PeerRow] = []
    old = {(each.pid, each.start_time): each for each in before.snapshot.processes}
    for process in now.snapshot.processes:
        if process.ended:
            continue
        then = old.get((process.pid, process.start_time))
        processes.append(compare_processes(then, process, seconds))
        known = {(each.number, each.opened): each for each in (then.endpoints if then is not None else ())}
        for endpoint in process.endpoints:
            if endpoint.number:
                earlier = known.get((endpoint.number, endpoint.opened))
                endpoints.append(compare_endpoints(process.pid, earlier, endpoint, seconds))
                peers += compare_peers(process.pid, earlier, endpoint, seconds)
    ports = {(each.device, each.port): each for each in before.ports}
    compared = [compare_ports(ports.get((each.device, each.port), each), each, seconds) for each in now.ports]
    return Screen(
        seconds=seconds,
        processes=in_order(processes, sort),
        endpoints=in_order(endpoints, sort),
        peers=in_order(peers, sort)[:most_peers],
        ports=in_order(compared, sort),
        unreadable=now.snapshot.unreadable,
    )


def in_order(rows: Iterable[Row], sort: str) -> tuple[Row, ...]:
    """Rows by a key; those that are equal by their names."""
    by_name = sorted(rows, key=attrgetter("traffic.name"))
    return tuple(
        by_name if sort == "name" else sorted(by_name, key=attrgetter(f"traffic.{sort}"), reverse=True)
    )


def compare_processes(before: Process | None, now: Process, seconds: float) -> ProcessRow:
    """The row of a process. Endpoints that were closed are in its rates."""
    then = sum_counters(before.endpoints if before is not None else ())
    found = sum_counters(now.endpoints)
    opened = [endpoint for endpoint in now.endpoints if endpoint.number]
    levels = sum_counters(opened)
    return ProcessRow(
        pid=now.pid,
        program=now.program,
        job=now.job,
        rank=now.rank if now.rank >= 0 else None,
        endpoints=len(opened),
        rates=compare_counters(then, found, seconds),
        pending=count_pending(levels),
        unexpected=count_unexpected(levels),
    )


def compare_endpoints(pid: int, before: Endpoint | None, now: Endpoint, seconds: float) -> EndpointRow:
    """The row of an endpoint."""
    return EndpointRow(
        pid=pid,
        number=now.number,
        provider=now.provider,
        name=now.name,
        protocol=find_protocol(before, now),
        rates=compare_counters(before.counters if before is not None else {}, now.counters, seconds),
        pending=count_pending(now.counters),
        unexpected=count_unexpected(now.counters),
    )


def find_protocol(before: Endpoint | None, now: Endpoint) -> str | None:
    """The protocol that carried the most messages."""
    carried: dict[str, int] = {}
    for (direction, protocol), messages in now.messages.items():
        then = before.messages.get((direction, protocol)) if before is not None else None
        growth = sum(messages.counts) - (sum(then.counts) if then is not None else 0)
        carried[protocol] = carried.get(protocol, 0) + growth
    most = max(carried, key=carried.__getitem__, default=None)
    return most if most is not None and carried[most] > 0 else None


def compare_peers(pid: int, before: Endpoint | None, now: Endpoint, seconds: float) -> list[PeerRow]:
    """The rows of an endpoint's peers."""
    old = {(each.address, each.way): each for each in (before.peers if before is not None else ())}
    nothing = Peer("", "", 0, 0, 0, 0, 0)

    def row(peer: Peer) -> PeerRow:
        then = old.get((peer.address, peer.way), nothing)
        return PeerRow(
            pid=pid,
            endpoint=now.number,
            address=peer.address,
            way=peer.way,
            sends=per_second(then.messages_sent, peer.messages_sent, seconds),
            receives=per_second(then.messages_received, peer.messages_received, seconds),
            bytes_sent=per_second(then.bytes_sent, peer.bytes_sent, seconds),
            bytes_received=per_second(then.bytes_received, peer.bytes_received, seconds),
            errors=per_second(then.errors, peer.errors, seconds),
        )

    return [row(peer) for peer in now.peers]


def compare_ports(before: PortCount, now: PortCount, seconds: float) -> PortRow:
    """The row of a port."""

    def rate(name: str) -> Any:
        then, found = getattr(before, name), getattr(now, name)
        return None if then is None or found is None else per_second(then, found, seconds)

    counted = ("bytes_sent", "bytes_received", "errors", "congestion", "retries")
    return PortRow(now.device, now.port, now.state, now.rate, **{name: rate(name) for name in counted})


def compare_counters(before: Mapping[str, int], now: Mapping[str, int], seconds: float) -> Rates:
    """Rates of an endpoint's counters, or of sums of them."""

    def rate(*names: str) -> float:
        then, found = (sum(counters.get(name, 0) for name in names) for counters in (before, now))
        return per_second(then, found, seconds)

    return Rates(
        sends=rate("sends"),
        receives=rate("receives"),
        remote=rate(*_REMOTE),
        bytes_sent=rate("bytes_sent"),
        bytes_received=rate("bytes_received"),
        errors=rate("errors"),
    )


def per_second(before: int, now: int, seconds: float) -> float:
    """The growth; a counter that is lower than before has started again."""
    return max(now - before, 0) / seconds


def sum_counters(endpoints: Iterable[Endpoint]) -> dict[str, int]:
    """The sums of all counters."""
    found: dict[str, int] = {}
    for endpoint in endpoints:
        for name, value in endpoint.counters.items():
            found[name] = found.get(name, 0) + value
    return found


def count_pending(counters: Mapping[str, int]) -> int:
    """Operations that are not finished."""
    return counters.get("pending", 0) + counters.get("backlog", 0)


def count_unexpected(counters: Mapping[str, int]) -> int:
    """Messages that wait for a receive, here or at the sender."""
    return counters.get("unexpected_messages", 0) + counters.get("announced_messages", 0)


def traffic_of(rates: Rates, pending: int, unexpected: int, name: str) -> Traffic:
    """What a row is sorted by."""
    return Traffic(
        bytes=rates.bytes_sent + rates.bytes_received,
        messages=rates.sends + rates.receives + rates.remote,
        errors=rates.errors,
        pending=pending,
        unexpected=unexpected,
        name=name,
    )
