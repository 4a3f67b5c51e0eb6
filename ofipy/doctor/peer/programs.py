# SPDX-License-Identifier: BSD-3-Clause
"""What programs of this host send while operations of theirs wait, for comparison with what a provider can move."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ofipy.doctor.job.namespace import NamespaceReader
from ofipy.doctor.peer.sockets import resolve_all
from ofipy.doctor.processes import is_waiting
from ofipy.statistics import Endpoint, Snapshot

__all__ = ["Programs", "compare_scans", "watch_programs"]


@dataclass(slots=True)
class Programs:
    """Those that send to one host, and have more to send."""

    names: list[str] = field(default_factory=list)
    bytes: int = 0
    """To all hosts: their peers share the interface."""
    seconds: float = 0.0

    @property
    def rate(self) -> float | None:
        """Bytes per second; None: no program is to be judged."""
        return self.bytes / self.seconds if self.bytes and self.seconds > 0 else None

    def describe(self) -> dict[str, Any]:
        """For the document."""
        rate = self.rate
        return {"programs": self.names, "mb_per_sec": None if rate is None else round(rate / 1e6, 3)}


def watch_programs(host: str, seconds: float) -> Programs:
    """Look twice at the other processes of this network namespace, so many seconds apart."""
    addresses = resolve_all(host)
    with NamespaceReader() as reader:
        before, began = reader.scan(), time.monotonic()
        time.sleep(seconds)
        return compare_scans(before, reader.scan(), time.monotonic() - began, addresses)


def compare_scans(before: Snapshot, now: Snapshot, seconds: float, addresses: frozenset[str]) -> Programs:
    """What was sent between two scans by endpoints of which operations waited at both."""
    found = Programs(seconds=seconds)
    for endpoint, earlier, program in pair_endpoints(before, now):
        if not (is_waiting(endpoint) and is_waiting(earlier)):
            continue
        old = {each.address: each.bytes_sent for each in earlier.peers}
        sent = {
            each.address: each.bytes_sent - old[each.address]
            for each in endpoint.peers
            if each.way != "shm" and each.address in old
        }
        if any(count > 0 and host_of(address) in addresses for address, count in sent.items()):
            found.bytes += sum(sent.values())
            found.names.append(program)
    return found


def pair_endpoints(before: Snapshot, now: Snapshot) -> Iterator[tuple[Endpoint, Endpoint, str]]:
    """Endpoints that are open in both scans, with the name of their program."""
    earlier = {
        (process.pid, process.start_time, endpoint.number): endpoint
        for process in before.processes
        for endpoint in process.endpoints
        if endpoint.number
    }
    for process in now.processes:
        for endpoint in process.endpoints:
            known = earlier.get((process.pid, process.start_time, endpoint.number))
            if known is not None:
                yield endpoint, known, f"{process.program or 'a program'} (pid {process.pid})"


def host_of(address: str) -> str:
    """The host in an address as providers write it: ``10.0.0.2:80``, ``tcp://[fd00::7]:80``."""
    return address.rpartition("://")[2].rpartition(":")[0].strip("[]")
