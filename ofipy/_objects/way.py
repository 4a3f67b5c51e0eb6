# SPDX-License-Identifier: BSD-3-Clause
"""By which of its providers an endpoint reaches a peer."""

from ofipy._base.binding import Text, check, lib
from ofipy._base.limits import UINT32_MAX, whole_number
from ofipy._operations.initiator import Initiator, addressee

__all__ = ["way"]


def way(self: Initiator, peer: int | None = None) -> str:
    """Provider by which a peer is reached, or would be: one of several, where the endpoint is made of them as ``link``.

    Parameters
    ----------
    peer : Peer or int
        One of the endpoint's vector. Default: the one peer of a connected endpoint.

    Returns
    -------
    str
        Its name, such as ``shm``. Before the first operation, what the peer's address promises.

    Raises
    ------
    UnknownPeer
        When there is no such peer.
    Unreachable
        When no provider of the endpoint leads there from here.
    """
    peer = addressee(self, peer, "way")
    name = Text()
    number = whole_number("peer", peer, 0, UINT32_MAX, operation="way")
    result = lib.ofp_peer_way(self._pointer("way"), number, name.pointer, name.size)
    check(result, operation="way", provider=self._domain.provider, peer=self._peer_text(peer))
    return str(name)
