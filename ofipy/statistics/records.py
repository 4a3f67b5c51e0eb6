# SPDX-License-Identifier: BSD-3-Clause
"""What a reader finds in the statistics pages of this host: processes, their endpoints, and the peers of those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ofipy._base.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Endpoint", "Messages", "Peer", "Process", "Snapshot"]


class Messages(Record):
    """Messages of one direction and one protocol."""

    counts: tuple[int, ...]
    """By size: ``counts[0]`` of 0 or 1 byte, ``counts[n]`` of 2**n to 2**(n+1) - 1 bytes, the last of all longer."""
    bytes: int
    """Of all of them together."""


class Peer(Record):
    """What an endpoint has exchanged with one peer."""

    address: str
    """As the provider writes it; ``other`` for the sum of all peers that have no entry of their own."""
    way: str
    """The provider that carries the messages; empty where none does any more."""
    messages_sent: int
    messages_received: int
    bytes_sent: int
    bytes_received: int
    errors: int


class Endpoint(Record):
    """An endpoint, or the sum of those of one provider that were closed."""

    number: int
    """In its process; 0 for a sum of closed ones."""
    provider: str
    name: str
    """Its address; empty for a sum of closed ones."""
    opened: float
    """When, in seconds of ``time.monotonic()``; 0 for a sum of closed ones."""
    last_progress: float
    """Likewise: the last round of progress that asked the kernel; 0 before the first."""
    counters: Mapping[str, int]
    """By the names of :class:`ofipy.EndpointStatistics`. Counters of a domain are divided among its endpoints."""
    messages: Mapping[tuple[str, str], Messages]
    """By direction (``sent`` or ``received``) and protocol, without those that have not been used."""
    peers: tuple[Peer, ...]


class Process(Record):
    """A process that uses ofipy."""

    pid: int
    """As this process sees it."""
    start_time: int
    """Ticks of the clock since the system started, proc_pid_stat(5). With the pid it names the process for ever."""
    program: str
    job: str
    """Name of its job; empty if it has none."""
    rank: int
    """In its job; -1 if it has none."""
    ended: bool
    """The process is no more. These are its last values, and the next scan does not find it."""
    endpoints: tuple[Endpoint, ...]


class Snapshot(Record):
    """What one scan has found."""

    processes: tuple[Process, ...]
    unreadable: int
    """Processes whose descriptors this user may not see, and processes with a page that this reader does not know."""
