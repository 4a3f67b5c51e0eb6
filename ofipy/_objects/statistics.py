# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint has counted."""

from __future__ import annotations

from ofipy._base.binding import check, ffi, lib
from ofipy._base.record import Record
from ofipy._operations.initiator import Initiator

__all__ = ["EndpointStatistics", "stats"]


class EndpointStatistics(Record):
    """Counters of an endpoint since it was opened; those marked "now" are levels."""

    sends: int
    receives: int
    reads: int
    writes: int
    atomics: int
    flushes: int
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
    """Now: messages whose payload is still at the sender, and short ones kept in place of such."""
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
    registrations: int
    """Of memory for operations, by the domain's transport; those of :meth:`Domain.register` do not count."""
    registrations_reused: int
    """Operations whose memory was still registered from an earlier one."""
    registrations_dropped: int
    """Kept ones that were given up for others."""
    messages_dropped: int
    """Messages that came to an endpoint of type dgram and found neither a receive nor room to be kept."""
    messages_mapped: int
    """Received large messages that were copied out of memory of the sender's domain (over shm)."""
    messages_pipelined: int
    """Those that the sender copied into shared memory and the receiver out of it at the same time."""
    messages_attached: int
    """Those that were copied out of the sender's address space (process_vm_readv(2))."""
    packet_buffers: int
    """Now: buffers into which the domain's endpoints of type rdm can receive packets (over verbs)."""
    packet_buffers_reclaimed: int
    """Those that a device had lost with a peer, and that are used again (over verbs, on Soft-RoCE)."""
    packed: int
    """Operations whose memory had more pieces than the transport takes, and was copied into one buffer for it."""


def stats(self: Initiator) -> EndpointStatistics:
    """Counters since it was opened."""
    record = ffi.new("struct ofp_endpoint_statistics *")
    check(
        lib.ofp_endpoint_statistics(self._pointer("stats"), record),
        operation="stats",
        provider=self._domain.provider,
    )
    return EndpointStatistics(*(int(getattr(record, name)) for name in EndpointStatistics.__match_args__))
