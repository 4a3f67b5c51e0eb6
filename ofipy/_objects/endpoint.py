# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints: where messages leave and arrive; and aliases, which have other default flags."""

from __future__ import annotations

import errno as codes
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from ofipy._base.binding import Text, check, drain_log, ffi, lib
from ofipy._base.errors import InvalidArgument, NotSupported
from ofipy._base.flags import Access, Flag, complete_flags, parse_flags
from ofipy._base.lifetime import Handle, Opening, Resource
from ofipy._base.linger import Departure, close_at_once
from ofipy._completion.counter import Counter, CounterClass, RegionClass
from ofipy._completion.cq import CompletionQueue
from ofipy._completion.eq import EventQueue
from ofipy._completion.request import Request
from ofipy._discovery.address import Address, address_of_endpoint
from ofipy._discovery.av import AddressVector, Peer
from ofipy._discovery.domain import Child
from ofipy._discovery.info import Info
from ofipy._discovery.peers import Peers
from ofipy._memory.region import Region
from ofipy._objects import incarnation, options, profile, protocols, security, statistics, way
from ofipy._objects.attributes import ConnectionRequest, EndpointAttributes
from ofipy._objects.parent import P
from ofipy._objects.receive_context import ReceiveContext
from ofipy._operations import atomics, connection, messaging, multi_receive, objects, posting, reach, rma
from ofipy._operations.connection import Connection
from ofipy._operations.flush import flush as flush_peers
from ofipy._operations.poster import CLOSED, Poster, make_poster
from ofipy._operations.refused import check_defaults

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ofipy._memory.accepted import Memory

__all__ = ["Endpoint", "EndpointAlias"]


@messaging.begin_in_c
@rma.begin_in_c
@atomics.begin_in_c
class Endpoint(Child[P]):
    """Sends and receives messages. Made by :func:`ofipy.open`, or :meth:`Domain.endpoint` and :meth:`enable`.

    Parameters
    ----------
    domain : Domain
        Whose device it uses.
    cq : CompletionQueue, optional
        Where posted operations end. Default: one of its own.
    av : AddressVector, optional
        Its peers. Default: one of its own. Not for the type ``msg``, which has one peer.
    rx : ReceiveContext, optional
        Where receives are posted, for several endpoints; `av` is then that of the context.
    send_cq : CompletionQueue, optional
        Where posted sends end. Default: `cq`.
    service : int or str, optional
        Port, or name that stands for one, at which peers find it. Default: any.
    complete : str, optional
        Default completion level of its sends: ``transmit``, ``delivery`` or ``match``.
    tx_flags : Flag or str, optional
        Of every send: ``inject``, ``completion``, or a level as `complete` names it.
    rx_flags : Flag or str, optional
        Of every posted receive: ``completion``, ``multi_recv``.
    tx_size : int, optional
        Operations in flight before a raw post is told to try again, 1 to 2**24. Default: ``info.tx_size``.
    unexpected_size : int, optional
        Bytes that it keeps of messages which nobody has received, 256 for each and payload above 64 bytes; 1 to 2**40.
        Default: ``OFIPY_UNEXPECTED_SIZE``. A transport with ``info.offloads_matching`` has bounds of its own.
    min_multi_recv : int, optional
        Bytes: multi-receive buffers with less room left are released, 1 to 2**40. Default: 64.
    selective_completion : bool or str
        Only posted operations with ``Flag.COMPLETION`` write queue entries: of sends (``transmit``), of receives
        (``receive``), or of both (True).
    remote_events : bool
        What peers read and write here by RMA and atomics writes entries to `cq`. Without, only a write that carries
        remote CQ data does.
    eq : EventQueue, optional
        What hears of its peers. Default: nobody.
    counters : mapping of str to Counter, optional
        What counts its operations: by ``send``, ``recv``, ``read``, ``write`` (atomics that fetch are reads, the others
        writes), ``remote_read`` and ``remote_write``. One counter may count several classes and endpoints.
    traffic_class : int, optional
        Of its packets, 0 to 255: four times the code point (RFC 2474). Default: the system's. Only networks can do it.
    request : ConnectionRequest, optional
        Of the type ``msg``: whose connection it will be; :meth:`accept` answers, closing it before refuses.
    """

    __slots__ = ("_attributes", "_cq", "_handle", "_owned", "_peers", "_poster")

    _instead = "send endpoint.address; the other process opens its own"

    # Operations: one Python call each, and for those that most programs use one call from there into C.

    tsend = messaging.tsend
    send = messaging.send
    trecv_into = messaging.trecv_into
    recv_into = messaging.recv_into
    trecv = messaging.trecv
    recv = messaging.recv
    messages = messaging.messages
    tsend_obj = objects.tsend_obj
    send_obj = objects.send_obj
    trecv_obj = objects.trecv_obj
    recv_obj = objects.recv_obj
    probe = messaging.probe
    prepare_tsend = messaging.prepare_tsend
    prepare_send = messaging.prepare_send
    prepare_trecv = messaging.prepare_trecv
    prepare_recv = messaging.prepare_recv
    trecv_many = multi_receive.trecv_many
    recv_many = multi_receive.recv_many
    read = rma.read
    write = rma.write
    prepare_read = rma.prepare_read
    prepare_write = rma.prepare_write
    post_read = rma.post_read
    post_write = rma.post_write
    atomic = atomics.atomic
    fetch_atomic = atomics.fetch_atomic
    compare_atomic = atomics.compare_atomic
    prepare_atomic = atomics.prepare_atomic
    prepare_fetch_atomic = atomics.prepare_fetch_atomic
    prepare_compare_atomic = atomics.prepare_compare_atomic
    flush = flush_peers
    post_atomic = atomics.post_atomic
    post_fetch_atomic = atomics.post_fetch_atomic
    post_compare_atomic = atomics.post_compare_atomic
    post = posting.post
    post_tsend = posting.post_tsend
    post_send = posting.post_send
    post_trecv = posting.post_trecv
    post_recv = posting.post_recv
    cancel = posting.cancel
    insert = reach.insert
    connect = connection.connect
    accept = connection.accept
    shutdown = connection.shutdown
    option = options.option
    set_option = options.set_option
    stats = statistics.stats
    profile = profile.profile
    way = way.way
    incarnation = incarnation.incarnation
    security = security.security
    protocols = protocols.protocols

    def __init__(
        self,
        domain: P,
        *,
        cq: CompletionQueue | None = None,
        av: AddressVector | None = None,
        rx: ReceiveContext | None = None,
        send_cq: CompletionQueue | None = None,
        service: int | str | None = None,
        complete: str | None = None,
        tx_flags: Flag | str | None = None,
        rx_flags: Flag | str | None = None,
        tx_size: int | None = None,
        unexpected_size: int | None = None,
        min_multi_recv: int | None = None,
        selective_completion: bool | Literal["transmit", "receive"] = False,
        remote_events: bool = False,
        eq: EventQueue | None = None,
        counters: Mapping[CounterClass, Counter] | None = None,
        traffic_class: int | None = None,
        request: ConnectionRequest | None = None,
    ) -> None:
        self._domain = domain
        self._attributes = EndpointAttributes(
            domain,
            cq=cq,
            av=av,
            rx=rx,
            send_cq=send_cq,
            service=service,
            complete=complete,
            tx_flags=tx_flags,
            rx_flags=rx_flags,
            tx_size=tx_size,
            unexpected_size=unexpected_size,
            min_multi_recv=min_multi_recv,
            selective_completion=selective_completion,
            remote_events=remote_events,
            eq=eq,
            counters=counters,
            traffic_class=traffic_class,
            request=request,
        )
        self._cq = self._attributes.cq
        self._peers = Peers(self, self._attributes.av, connects=self._attributes.connects)
        # What calls into C take; None while it is not enabled, and once it is closed.
        self._handle: Any = None
        self._poster: Poster = CLOSED
        self._owned: Resource | None = None  # closed with the endpoint

    def enable(self) -> Self:
        """Open it: peers can reach it when this returns. A second call does nothing.

        Raises
        ------
        AddressInUse
            When another endpoint has the service.
        NotSupported
            When remote events or counters need :attr:`Cap.RMA_EVENT`, or `traffic_class` packets that can be marked.
        FabricError
            When the provider refuses, with its reason.
        """
        if self._is_enabled:
            self._pointer("enable")
            return self
        domain, provider, attributes = self._domain, self._domain.provider, self._attributes
        attributes.check_traces()
        record, _texts = attributes.record()
        result, text = ffi.new("struct ofp_endpoint **"), Text()
        with Opening(lambda: result[0], close_at_once, lib.ofp_endpoint_free) as opening:
            owner = domain._pointer("enable")
            opened = lib.ofp_endpoint_open(owner, record, result, text.pointer, text.size)
            if opened == -codes.ENOENT and attributes.request is not None:
                raise connection.answered("enable", provider)
            check(opened, text=text, operation="open an endpoint", provider=provider)
            self._handle = opening.hold()
            departure = Departure(
                self._handle, owner, provider, lambda raw: str(Address.named(provider, raw))
            )
            self._own(
                Handle(
                    self._handle,
                    departure.close,
                    attributes.parents(),
                    "endpoint",
                    opening=opening,
                    departure=departure,
                )
            )
        self._poster = make_poster(self._handle, self._core.shell, domain, self._peers.vector)
        number = lib.ofp_endpoint_id(self._handle)
        attributes.cq._endpoints[number] = attributes.send_cq._endpoints[number] = self
        if attributes.rx is not None:
            attributes.rx._endpoints[number] = self
        drain_log()
        return self

    @property
    def _is_enabled(self) -> bool:
        return hasattr(self, "_core")

    @property
    def fabric(self) -> Any:
        """The fabric of its domain."""
        return self._domain.fabric

    @property
    def cq(self) -> CompletionQueue:
        """Where posted operations end."""
        return self._cq

    @property
    def av(self) -> AddressVector:
        """Its peers.

        Raises
        ------
        NotSupported
            When the endpoint is of type ``msg``: it has one peer, :attr:`peer`.
        """
        if self._peers.av is None:
            raise NotSupported(
                "an endpoint of type msg has one peer and no address vector",
                operation="av",
                provider=self.provider,
                remedy="connect() it to the peer",
            )
        return self._peers.av

    @property
    def info(self) -> Info:
        """Capabilities and limits."""
        return self._domain.info

    @property
    def peer(self) -> Peer:
        """The other side, for operations that want a peer, such as :meth:`write`.

        Raises
        ------
        NotSupported
            When the endpoint is of another type: it has many peers.
        """
        return connection.only_peer(self)

    @property
    def peer_address(self) -> Address:
        """Where the other side is: of a connecting endpoint the listener's address.

        Raises
        ------
        NotConnected
            When nobody was asked yet.
        """
        return connection.peer_address(self)

    @property
    def provider(self) -> str:
        """Name of the provider."""
        return self._domain.provider

    @property
    def id(self) -> int:
        """What completion records call it; unique in its domain."""
        return int(lib.ofp_endpoint_id(self._pointer("id")))

    @property
    def address(self) -> Address:
        """Where peers reach it; ``bytes()`` and ``str()`` of it travel."""
        return address_of_endpoint(self._pointer("address"), self.provider)

    @property
    def tx_flags(self) -> Flag:
        """Flags that every send has by default."""
        return Flag(self.option("tx_flags"))

    @property
    def rx_flags(self) -> Flag:
        """Flags that every posted receive has by default."""
        return Flag(self.option("rx_flags"))

    def alias(
        self,
        *,
        complete: str | None = None,
        tx_flags: Flag | str | None = None,
        rx_flags: Flag | str | None = None,
    ) -> EndpointAlias[P]:
        """Make another handle of this endpoint, with other default flags (fi_endpoint(3), fi_ep_alias).

        Parameters
        ----------
        complete : str, optional
            Completion level of its sends, RMA and atomics: ``transmit``, ``delivery`` or ``match``.
        tx_flags : Flag or str, optional
            Of every one of them, in place of this endpoint's: as of :class:`Endpoint`. Default, unless `complete` is
            given: those of this endpoint now.
        rx_flags : Flag or str, optional
            Of every receive posted through it. Default: those of this endpoint now.

        Returns
        -------
        EndpointAlias
            Closing it leaves the endpoint, and what was started through the alias, as they are.

        Raises
        ------
        InvalidArgument
            When flags cannot be defaults.
        """
        pointer = self._pointer("alias")
        if complete is None and tx_flags is None:
            sends = self.option("tx_flags")
        else:
            sends = complete_flags(complete) | parse_flags(Flag, tx_flags).value
        receives = self.option("rx_flags") if rx_flags is None else parse_flags(Flag, rx_flags).value
        result = ffi.new("struct ofp_endpoint **")
        with Opening(lambda: result[0], close_at_once, lib.ofp_endpoint_free) as opening:
            made = lib.ofp_endpoint_alias(pointer, sends, receives, result)
            check_defaults(made, operation="alias", provider=self.provider)
            return EndpointAlias(self, opening.hold(), opening)

    def register(
        self,
        buffer: Memory,
        *,
        access: Access | str | Iterable[Access | str] = Access.LOCAL,
        key: int | None = None,
        counters: Mapping[RegionClass, Counter] | None = None,
    ) -> Region:
        """Register memory; as :meth:`Domain.register`."""
        return self._domain.register(buffer, access=access, key=key, counters=counters)

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike = "uint8",
        *,
        access: Access | str | Iterable[Access | str] = Access.LOCAL,
        counters: Mapping[RegionClass, Counter] | None = None,
    ) -> npt.NDArray[Any]:
        """Allocate memory that the provider moves best; as :meth:`Domain.empty`."""
        return self._domain.empty(shape, dtype, access=access, counters=counters)

    @property
    def closed(self) -> bool:
        """Whether it was closed, itself or with a parent."""
        return self._is_enabled and not self._core.is_open

    def _handles(self) -> list[Handle]:
        # An endpoint of ofipy.open() closes its queue, address vector, domain and fabric too.
        own = [self._core] if self._is_enabled else []
        return own + (self._owned._handles() if self._owned is not None else [])

    def _closed(self) -> None:
        self._handle = None
        self._poster.close(None)
        self._cq._tell_awaiting()

    def _pointer(self, operation: str) -> Any:
        if not self._is_enabled:
            raise InvalidArgument(
                "the endpoint is not enabled", operation=operation, remedy="call enable() first"
            )
        return super()._pointer(operation)

    def _peer_text(self, peer: int) -> str | None:
        return self._peers.text(peer)

    def _sender(self, number: int) -> Peer | None:
        """The sender of a message to an endpoint, by its number, when the message's completion does not name it."""
        return self._peers.only

    def __repr__(self) -> str:
        state = "closed" if self.closed else str(self.address) if self._is_enabled else "not enabled"
        return f"<Endpoint {state}>"


class EndpointAlias(Endpoint[P]):
    """Another handle of an endpoint, with default flags of its own; made by :meth:`Endpoint.alias`.

    A record's own completion level wins over the default of either. In all else it is the endpoint: its queue, peers,
    memory, address and statistics, and options other than ``tx_flags`` and ``rx_flags``. It ends with the endpoint, or
    before it; closing it leaves the endpoint, and what was started through it, as they are.
    """

    __slots__ = ("_endpoint",)

    _warns = False  # its endpoint does

    def __init__(self, endpoint: Endpoint[P], pointer: Any, opening: Opening) -> None:
        endpoint = endpoint.endpoint if isinstance(endpoint, EndpointAlias) else endpoint
        super().__init__(endpoint._domain, cq=endpoint._cq, av=endpoint._peers.av)
        self._endpoint: Endpoint[P] = endpoint
        self._peers = endpoint._peers
        self._handle = pointer
        owner = (opening.memory, endpoint._core.shell)
        self._poster = make_poster(pointer, owner, self._domain, self._peers.vector)
        provider = endpoint.provider

        def close(pointer: Any) -> None:
            check(lib.ofp_endpoint_retire(pointer, 0), operation="close an alias", provider=provider)

        self._own(Handle(pointer, close, (endpoint._core,), "endpoint alias", opening=opening))

    @property
    def endpoint(self) -> Endpoint[P]:
        """The endpoint that it stands for."""
        return self._endpoint

    def enable(self) -> Self:
        """Nothing to do: its endpoint is enabled."""
        self._pointer("enable")
        return self

    def connect(self, address: Address | bytes | str, *, data: bytes = b"") -> Connection:
        """Connect the endpoint; as :meth:`Endpoint.connect`."""
        self._pointer("connect")
        return self._endpoint.connect(address, data=data)

    def accept(self, *, data: bytes = b"") -> Connection:
        """As :meth:`Endpoint.accept`."""
        self._pointer("accept")
        return self._endpoint.accept(data=data)

    def shutdown(self) -> Request:
        """End the connection of the endpoint; as :meth:`Endpoint.shutdown`."""
        self._pointer("shutdown")
        return self._endpoint.shutdown()

    @property
    def peer_address(self) -> Address:
        """As :attr:`Endpoint.peer_address`."""
        return self._endpoint.peer_address

    def post(
        self, operations: np.ndarray[Any, np.dtype[np.void]], *, after: tuple[Counter, int] | None = None
    ) -> int:
        """As :meth:`Endpoint.post`, with the flags of the alias."""
        self._pointer("post")
        return super().post(operations, after=after)

    def _closed(self) -> None:
        self._handle = None
        self._poster.close(self._endpoint._poster)

    def __repr__(self) -> str:
        return f"<EndpointAlias {'closed' if self.closed else self.address}>"
