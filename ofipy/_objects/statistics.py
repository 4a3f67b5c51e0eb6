# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint has counted."""

from dataclasses import dataclass

from ofipy._base.binding import check, ffi, lib
from ofipy._operations.initiator import Initiator

__all__ = ["EndpointStatistics", "stats"]


@dataclass(frozen=True, slots=True)
class EndpointStatistics:
    """Counters of an endpoint since it was opened; those marked "now" are levels."""

    sends: int
    receives: int
    reads: int
    writes: int
    atomics: int
    bytes_sent: int
    bytes_received: int
    errors: int
    posted_receives: int
    """Now: receives without a message."""
    unexpected_messages: int
    """Now: messages without a receive."""
    unexpected_bytes: int
    """Now: their payload kept here."""
    announced_messages: int
    """Now: messages whose payload is still at the sender."""
    linear_searches: int
    """Searches with masks beyond those that have an index."""
    backlog: int
    """Now: operations kept until the transport has room."""
    pending: int
    """Now: operations in flight."""
    peers_up: int
    peers_lost: int
    sleeps: int
    """Waits of the domain that slept."""
    wakeups: int
    progress_calls: int


def stats(self: Initiator) -> EndpointStatistics:
    """Counters since it was opened."""
    record = ffi.new("struct ofp_endpoint_statistics *")
    check(
        lib.ofp_endpoint_statistics(self._pointer("stats"), record),
        operation="stats",
        provider=self._domain.provider,
    )
    return EndpointStatistics(*(int(getattr(record, name)) for name in EndpointStatistics.__slots__))
