# SPDX-License-Identifier: BSD-3-Clause
"""Address vectors: peers as small integers."""

import errno as codes
import weakref
from collections.abc import Iterator
from typing import Any, Self

from ofipy._base.binding import check, ffi, lib
from ofipy._base.errors import Closed, FabricError, InvalidArgument
from ofipy._base.lifetime import Handle, Opening, ProcessBound
from ofipy._base.limits import UINT32_MAX, service_text, whole_number
from ofipy._base.owner import foreign
from ofipy._discovery.address import Address, counted, read_name, resolve
from ofipy._discovery.domain import Child, D

__all__ = ["PEER_ANY", "AddressVector", "Peer", "own_peer", "wrong_peer"]


class _Nobody(int):
    """Shown by its name where it is a default."""

    def __repr__(self) -> str:
        return "PEER_UNKNOWN"

    def __reduce__(self) -> Any:
        return int, (int(self),)


PEER_ANY: int = lib.OFP_PEER_ANY
PEER_UNKNOWN: int = _Nobody(lib.OFP_PEER_UNKNOWN)
ONLY_PEER: int = PEER_UNKNOWN
"""Of a connected endpoint; what others take for nobody."""

_RANGE_MAX = 2**20
_SEEN_MIN = 1024
"""Objects of peers that are gone are not looked for below this number."""


class Peer(ProcessBound, int):
    """A peer: its index in an address vector, usable wherever an operation of that vector's endpoints names one.

    The index of a removed peer comes again at the earliest with another generation, in its upper 12 bits: whoever
    keeps a removed peer is told so. A peer that called and was not inserted counts as removed when it has left, and
    1,024 others have left after it: ``insert(peer.address)`` keeps it. A peer means something in its own vector only,
    so it cannot be pickled: send its :attr:`address`.
    """

    # One object for all peers of a vector. A number that a program makes a Peer of is of none: of one that is gone.
    _vector: "weakref.ref[Any]" = weakref.ref(frozenset((1,)))
    _instead = "send peer.address, and insert() that on the other side"

    @property
    def address(self) -> Address:
        """Where the peer is.

        Raises
        ------
        Closed
            When the address vector is gone.
        UnknownPeer
            When the peer was removed.
        """
        vector: AddressVector | None = self._vector()
        if vector is None:
            raise Closed(
                "the address vector of this peer is gone",
                operation="address",
                remedy="keep the endpoint as long as its peers; str(peer.address), taken before, is text",
            )
        return vector.address(self)

    def __repr__(self) -> str:
        try:
            return f"<Peer {int(self)} {self.address}>"
        except FabricError:
            return f"<Peer {int(self)}>"

    def __str__(self) -> str:
        return int.__repr__(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


def wrong_peer(peer: object) -> InvalidArgument:
    """What comes of naming something else as a peer, such as its address."""
    is_address = isinstance(peer, Address | str | bytes | bytearray | memoryview)
    shown = repr(peer) if isinstance(peer, str) else "address"
    return InvalidArgument(
        f"peer={peer!r}; a Peer is meant",
        remedy=f"enter the address once: peer = endpoint.insert({shown})" if is_address else None,
    )


def own_peer(vector: "weakref.ref[Any]", peer: int, operation: str) -> int:
    """The number of a peer; of a :class:`Peer` only when it is one of these.

    Parameters
    ----------
    vector : weakref.ref
        What the endpoint's own peers refer to: its ``_vector``.
    peer : Peer or int
        A plain number is taken as it is: C knows whether there is such a peer.
    operation : str
        For the error.

    Raises
    ------
    InvalidArgument
        When it is a peer of another vector, or of another connection, or no number.
    """
    if isinstance(peer, Peer) and peer._vector is not vector:
        raise foreign(
            repr(peer),
            "address vector or connection",
            operation=operation,
            remedy="ep.insert(peer.address) gives the endpoint's own; a connected one has ep.peer",
        )
    if not hasattr(peer, "__index__"):
        raise wrong_peer(peer)
    return peer


class AddressVector(Child[D]):
    """Addresses of peers by index. Made by :meth:`Domain.av`; several endpoints may share one."""

    __slots__ = ("_peers", "_reference", "_seen_max")

    _warns = False  # its domain does

    def __init__(self, domain: D, *, auto_insert: bool = True) -> None:
        result = ffi.new("struct ofp_av **")
        attributes = ffi.new("struct ofp_av_attr *", {"auto_insert": auto_insert})
        provider = domain.provider
        with Opening(lambda: result[0], lib.ofp_av_retire, lib.ofp_av_free) as opening:
            check(
                lib.ofp_av_open(domain._pointer("av"), attributes, result), operation="av", provider=provider
            )
            self._domain = domain
            self._peers: dict[int, Peer] = {}
            self._seen_max = _SEEN_MIN
            self._reference = weakref.ref(self)

            def close(pointer: Any) -> None:
                check(lib.ofp_av_retire(pointer), operation="close an address vector", provider=provider)

            self._own(
                Handle(
                    opening.hold(),
                    close,
                    (domain._core,),
                    "address vector",
                    opening=opening,
                )
            )

    def insert(self, address: Address | bytes | str) -> Peer:
        """Enter an address; one that is there already keeps its index.

        Parameters
        ----------
        address : Address, bytes or str
            An address, its bytes, a URI, or ``host:port``.

        Returns
        -------
        Peer
            Valid until removed. Nothing is sent to the peer before the first operation.

        Raises
        ------
        InvalidArgument
            When the address cannot be understood.
        Unreachable
            When this provider, or the network of this domain, cannot reach it.
        """
        provider = self._domain.provider
        raw = resolve(provider, address, self._domain.info)
        index = ffi.new("uint32_t *")
        result = lib.ofp_av_insert(self._pointer("insert"), raw, len(raw), index)
        check(
            result,
            operation="insert",
            provider=provider,
            peer=str(address) if isinstance(address, str) else None,
        )
        return self._peer(index[0])

    def insert_range(
        self, node: str | None, nodes: int = 1, *, service: int | str, services: int = 1
    ) -> list[Peer]:
        """Enter the addresses of a regular cluster: all of them, or on a failure none (fi_av_insertsym(3)).

        Parameters
        ----------
        node : str or None
            The first host: a name that ends with a number, such as ``node08``, or an IP address. None: this one.
        nodes : int
            Hosts, 1 to 2**20; the number counts up.
        service : int or str
            The first service of each host, a port or a name that ends with a number.
        services : int
            Services of each host, 1 to 2**20.

        Returns
        -------
        list of Peer
            ``nodes * services``, those of the first host first.

        Raises
        ------
        InvalidArgument
            When a name cannot be counted up, or an address cannot be understood.
        Unreachable
            When this provider cannot reach one of them.
        """
        nodes = whole_number("nodes", nodes, 1, _RANGE_MAX, "hosts", operation="insert_range")
        services = whole_number("services", services, 1, _RANGE_MAX, "services", operation="insert_range")
        if node is None and nodes != 1:
            raise InvalidArgument(
                f"node=None with nodes={nodes}; there is one such host", operation="insert_range"
            )
        hosts = counted(node or "", nodes) if nodes != 1 or node else [""]
        ports = counted(service_text(service, "insert_range"), services)
        texts = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts for port in ports]
        addresses = [resolve(self._domain.provider, text, self._domain.info) for text in texts]
        entered: list[Peer] = []
        peers = []
        try:
            for address in addresses:
                known = self.find(address)
                peers.append(known if known is not None else self.insert(address))
                if known is None:
                    entered.append(peers[-1])
        except FabricError:
            for peer in entered:
                self.remove(peer)
            raise
        return peers

    def find(self, address: Address | bytes | str) -> Peer | None:
        """The peer of an address that is there, None otherwise."""
        raw = resolve(self._domain.provider, address, self._domain.info)
        index = ffi.new("uint32_t *")
        result = lib.ofp_av_find(self._pointer("find"), raw, len(raw), index)
        if result == -codes.ENOENT:
            return None
        check(result, operation="find", provider=self._domain.provider)
        return self._peer(index[0])

    def remove(self, peer: int) -> None:
        """Take a peer out; its operations end as cancelled.

        Raises
        ------
        UnknownPeer
            When there is none.
        InvalidArgument
            When it is a peer of another vector.
        """
        number = whole_number(
            "peer", own_peer(self._reference, peer, "remove"), 0, UINT32_MAX, operation="remove"
        )
        result = lib.ofp_av_remove(self._pointer("remove"), number)
        check(result, operation="remove", provider=self._domain.provider)
        self._peers.pop(number, None)

    def address(self, peer: int) -> Address:
        """Where a peer is.

        Raises
        ------
        UnknownPeer
            When the vector has no such entry.
        InvalidArgument
            When it is a peer of another vector.
        """
        number = whole_number(
            "peer", own_peer(self._reference, peer, "address"), 0, UINT32_MAX, operation="address"
        )
        pointer, provider = self._pointer("address"), self._domain.provider
        name = read_name(lambda *room: lib.ofp_av_lookup(pointer, number, *room), "address", provider)
        return Address.named(provider, name)

    def __iter__(self) -> Iterator[Peer]:
        """Every peer, in the order inserted unless some were removed; peers may come and go meanwhile."""
        return map(self._peer, self._indices())

    def __len__(self) -> int:
        return int(lib.ofp_av_count(self._pointer("len")))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        state = "closed" if self.closed else "with 1 peer" if len(self) == 1 else f"with {len(self)} peers"
        return f"<AddressVector of {self._domain.provider} {state}>"

    def _peer(self, index: int) -> Peer:
        """The one Peer object of an index."""
        peer = self._peers.get(index)
        if peer is None:
            if len(self._peers) >= self._seen_max:
                self._drop_gone()
            peer = Peer(index)
            peer._vector = self._reference
            self._peers[index] = peer
        return peer

    def _drop_gone(self) -> None:
        """Drop the objects of peers that C has freed: their indices name nobody, and never will again."""
        seen = list(self._peers)
        present = set(self._indices())
        for index in seen:
            if index not in present:
                self._peers.pop(index, None)
        self._seen_max = max(_SEEN_MIN, 2 * len(self._peers))

    def _indices(self) -> Iterator[int]:
        cursor, index = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        while True:
            result = lib.ofp_av_next(self._pointer("iterate"), cursor, index)
            if result == -codes.ENOENT:
                return
            check(result, operation="iterate", provider=self._domain.provider)
            yield index[0]

    def peers(self) -> Iterator[Peer]:
        """Peers that this program has seen: inserted, or the source of a message it looked at."""
        return iter(list(self._peers.values()))
