# SPDX-License-Identifier: BSD-3-Clause
"""Which protocol carries messages of which length, and why: what the code that chooses would choose now."""

from __future__ import annotations

from typing import Any

from ofipy._base.binding import check, ffi, lib
from ofipy._base.limits import UINT32_MAX, whole_number
from ofipy._base.record import Record
from ofipy._operations.initiator import Initiator, addressee

__all__ = ["Protocol", "protocols"]

# By enum ofp_protocol, with OFP_PROTOCOL_OFFLOADED behind, and by enum ofp_protocol_reason.
_PROTOCOLS = ("eager", "bounce", "announced", "mapped", "pipelined", "attached", "offloaded")
_REASONS = ("threshold", "cost", "memory", "forced")


class Protocol(Record):
    """How messages of some lengths travel, as :meth:`Endpoint.protocols` reports it."""

    direction: str
    """``sent``: messages to the peer. ``received``: announced messages of the peer, whose payload this side moves."""
    memory: str
    """With ``received``: ``shared`` if the sender's memory is of ``domain.empty`` and mapped here, as it is soon after
    the first message from it; else ``private``. With ``sent`` always ``any``."""
    from_size: int
    """Shortest message, bytes."""
    to_size: int
    """Longest message, bytes."""
    protocol: str
    """By its name in the statistics, such as ``eager``."""
    reason: str
    """``threshold``: the length is below or above a limit. ``cost``: it costs the least, as measured. ``memory``:
    where memory is, or the lack of it, decides. ``forced``: nothing else is possible."""
    cost_usec: float | None
    """Microseconds that a message of `from_size` bytes is expected to take. None: not measured."""


def protocols(self: Initiator, peer: int | None = None) -> tuple[Protocol, ...]:
    """Report how messages to and from a peer travel, by their length.

    The rows come from the functions that choose when a message is posted or received, so they are what applies now:
    memory that fills up, and costs that are measured, change them. They are those of messages without flags and with
    memory in one piece. Announced messages over shared memory are tried by another method now and then, to measure it.

    Parameters
    ----------
    peer : Peer or int
        One of the endpoint's vector, such as ``msg.source``. Default: the one peer of a connected endpoint.

    Returns
    -------
    tuple of Protocol
        First those of sent messages, from 0 bytes to the longest. Then, where this side chooses how it moves
        announced messages, those of received ones. Empty while the peer is not connected;
        ``ep.insert(address, wait=seconds)`` connects first.

    Raises
    ------
    UnknownPeer
        When there is no such peer.

    Examples
    --------
    >>> import ofipy
    >>> with ofipy.open(provider="tcp") as a, ofipy.open(provider="tcp") as b:
    ...     rows = a.protocols(a.insert(b.address, wait=10))
    >>> [(row.from_size, row.protocol, row.reason) for row in rows][0]
    (0, 'eager', 'threshold')
    """
    peer = addressee(self, peer, "protocols")
    number = whole_number("peer", peer, 0, UINT32_MAX, operation="protocols")
    rows = ffi.new("struct ofp_protocol_row[]", lib.OFP_PROTOCOL_ROWS_MAX)
    count = lib.ofp_peer_protocols(self._pointer("protocols"), number, rows, len(rows))
    check(count, operation="protocols", provider=self._domain.provider, peer=self._peer_text(peer))
    return tuple(_protocol(rows[place]) for place in range(count))


def _protocol(row: Any) -> Protocol:
    kinds = ("private", "shared") if row.received else ("any",)
    return Protocol(
        direction="received" if row.received else "sent",
        memory=kinds[row.shared],
        from_size=getattr(row, "from"),
        to_size=row.to,
        protocol=_PROTOCOLS[row.protocol],
        reason=_REASONS[row.reason],
        cost_usec=row.cost / 1000 if row.cost else None,
    )
