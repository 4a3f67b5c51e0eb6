# SPDX-License-Identifier: BSD-3-Clause
"""Whom an endpoint talks to: the peers of an address vector, or the one at the other end of a connection."""

import weakref
from typing import Any

from ofipy._base.errors import FabricError, NotConnected
from ofipy._discovery.address import Address
from ofipy._discovery.av import ONLY_PEER, PEER_ANY, PEER_UNKNOWN, AddressVector, Peer

__all__ = ["ConnectedPeer", "Peers"]


class ConnectedPeer(Peer):
    """The other side of a connection; no address vector has it."""

    @property
    def address(self) -> Address:
        """Where the other side is; see :attr:`Endpoint.peer_address`."""
        endpoint: Any = self._vector()
        if endpoint is None:
            raise NotConnected(
                "the endpoint of this peer is gone",
                operation="address",
                remedy="keep the endpoint as long as its peers; str(peer.address), taken before, is text",
            )
        address: Address = endpoint.peer_address
        return address


class Peers:
    """The peers of an endpoint, which its aliases share, or of a receive context.

    Parameters
    ----------
    owner : object
        Whose they are, where there is no vector.
    av : AddressVector or None
        None: of endpoints of type ``msg``.
    connects : bool
        It is itself such an endpoint, and has one peer.
    """

    __slots__ = ("av", "only", "vector")

    def __init__(self, owner: object, av: AddressVector | None, *, connects: bool) -> None:
        self.av = av
        # What its peers refer to, and no others.
        self.vector: weakref.ref[Any] = weakref.ref(owner) if av is None else av._reference
        self.only: ConnectedPeer | None = None
        if connects:
            self.only = ConnectedPeer(ONLY_PEER)
            self.only._vector = self.vector

    def text(self, peer: int) -> str | None:
        """A peer's address for messages, as far as it is known."""
        try:
            if self.av is None:
                return str(self.only.address) if self.only is not None else None
            if peer in (PEER_ANY, PEER_UNKNOWN) or not isinstance(peer, int):
                return None
            return str(self.av.address(peer))
        except (FabricError, OverflowError):
            return f"peer {int(peer)}"
