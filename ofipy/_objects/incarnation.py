# SPDX-License-Identifier: BSD-3-Clause
"""Incarnations of peers: what lies between two losses of a connection."""

from ofipy._base.binding import check, lib
from ofipy._base.limits import UINT32_MAX, whole_number
from ofipy._discovery.av import own_peer
from ofipy._operations.initiator import Initiator

__all__ = ["incarnation"]


def incarnation(self: Initiator, peer: int) -> int:
    """Number of the present incarnation of a peer.

    Each time that a peer comes up it gets the next number of its endpoint. Within one number no message is missing, and
    none passes an earlier one; what is lost with a connection is missing where the number changes, and both sides hear
    of that. An operation that is posted with ``incarnation=number`` stays within that one.

    Parameters
    ----------
    peer : Peer or int
        One of the endpoint's vector.

    Returns
    -------
    int
        From 1 on. 0: it is not up. An operation with ``incarnation=0`` ends as :class:`PeerLost`.

    Raises
    ------
    UnknownPeer
        When there is no such peer.
    NotSupported
        When the endpoint is not of type ``rdm``, or its transport matches receives itself (``ofi:…``).
    """
    peer = own_peer(self._peers.vector, peer, "incarnation")
    number = whole_number("peer", peer, 0, UINT32_MAX, operation="incarnation")
    result = lib.ofp_peer_incarnation(self._pointer("incarnation"), number)
    return int(check(result, operation="incarnation", provider=self._domain.provider))
