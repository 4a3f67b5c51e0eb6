# SPDX-License-Identifier: BSD-3-Clause
"""What is certain of a peer: whether it has proven that it may connect, and whether its bytes are encrypted."""

from __future__ import annotations

from ofipy._base.binding import check, ffi, lib
from ofipy._base.limits import UINT32_MAX, whole_number
from ofipy._base.record import Record
from ofipy._operations.initiator import Initiator, addressee

__all__ = ["Security", "security"]


class Security(Record):
    """Security of the connection to a peer, as :meth:`Endpoint.security` reports it."""

    proven: bool
    """The peer has given the proof that ``info.peer_proof`` names: of the key (``tcp``, ``verbs``), or of its user
    (``shm``). Over ``link``, the lane in use has required one of them."""
    encrypted: bool
    """Nobody on the network path can read or change the messages."""
    cipher: str | None
    """Name of the cipher; None when nothing is encrypted."""


def security(self: Initiator, peer: int | None = None) -> Security:
    """Report the security of the connection to a peer.

    It does not connect. Nothing is certain of a peer that is not connected: before the first operation, after the
    connection was lost, and with providers that have no connections, `proven` and `encrypted` are False.
    ``ep.insert(address, wait=seconds)`` connects first.

    Parameters
    ----------
    peer : Peer or int
        One of the endpoint's vector, such as ``msg.source``. Default: the one peer of a connected endpoint.

    Returns
    -------
    Security
        As it is now. If messages of the peer arrive over another lane than those to it, what is true of both.

    Raises
    ------
    UnknownPeer
        When there is no such peer.
    """
    peer = addressee(self, peer, "security")
    number = whole_number("peer", peer, 0, UINT32_MAX, operation="security")
    found = ffi.new("struct ofp_security *")
    result = lib.ofp_peer_security(self._pointer("security"), number, found)
    check(result, operation="security", provider=self._domain.provider, peer=self._peer_text(peer))
    cipher = ffi.string(found.cipher).decode() if found.encrypted else None
    return Security(proven=bool(found.proven), encrypted=bool(found.encrypted), cipher=cipher)
