# SPDX-License-Identifier: BSD-3-Clause
"""What is counted at one moment: by processes, and by ports whatever their drivers call it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from ofipy.host.counter import Counter, read_port_counters
from ofipy.host.device import DEVICES, read_devices
from ofipy.host.meaning import RETRIES, Kind
from ofipy.host.tree import Tree
from ofipy.statistics import Snapshot
from ofipy.statistics.scanner import Scanner

__all__ = ["PortCount", "Sample", "take_sample"]

# Drivers' names of the same, in the order in which they are looked for.
_SENT = ("port_xmit_data", "tx_bytes", "ip4OutOctets")
_RECEIVED = ("port_rcv_data", "rx_bytes", "ip4InOctets")


@dataclass(frozen=True, slots=True)
class PortCount:
    """What a port has counted; None: its driver does not."""

    device: str
    port: int
    state: str | None
    rate: str | None
    bytes_sent: int | None
    bytes_received: int | None
    errors: int
    congestion: int
    retries: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment."""

    time: float
    """Seconds of ``time.monotonic()``."""
    snapshot: Snapshot
    ports: tuple[PortCount, ...]


def take_sample(scanner: Scanner, tree: Tree) -> Sample:
    """Read everything."""
    return Sample(time.monotonic(), scanner.scan(), tuple(read_ports(tree)))


def read_ports(tree: Tree) -> Iterator[PortCount]:
    """What all ports have counted."""
    for device in read_devices(tree):
        for port in device.ports:
            found = read_port_counters(tree, f"{DEVICES}/{device.name}/ports/{port.number}")
            values = {counter.name: counter.value for counter in found}
            yield PortCount(
                device=device.name,
                port=port.number,
                state=port.state,
                rate=port.rate,
                bytes_sent=find_first(values, _SENT),
                bytes_received=find_first(values, _RECEIVED),
                errors=sum_of(found, Kind.ERROR),
                congestion=sum_of(found, Kind.CONGESTION),
                retries=sum(value for name, value in values.items() if name in RETRIES),
            )


def find_first(values: dict[str, int], names: tuple[str, ...]) -> int | None:
    """The value of the first of these names that is there."""
    return next((values[name] for name in names if name in values), None)


def sum_of(counters: list[Counter], kind: Kind) -> int:
    """The sum of the counters of a kind."""
    return sum(counter.value for counter in counters if counter.kind is kind)
