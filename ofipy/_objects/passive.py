# SPDX-License-Identifier: BSD-3-Clause
"""Listeners, and the connection requests that come to them (fi_cm(3))."""

import errno as codes
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from ofipy._base.binding import Text, check, failure, ffi, lib
from ofipy._base.contents import plain_bytes
from ofipy._base.errors import FabricError, InvalidArgument, NotSupported
from ofipy._base.lifetime import Handle, Opening, ProcessBound, Resource
from ofipy._base.limits import limit, service_text
from ofipy._base.owner import check_owner
from ofipy._completion.eq import Event, EventKind, EventQueue
from ofipy._discovery.address import Address, host_id, read_name, resolve, split_host_port
from ofipy._discovery.domain import Child
from ofipy._discovery.info import Info
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.keywords import ConnectOptions, EndpointOptions, refuse_unknown
from ofipy._objects.parent import Parent
from ofipy._operations.connection import answered

__all__ = ["ConnectionRequest", "PassiveEndpoint"]


class Accepting(Parent, Protocol):
    """A domain that makes endpoints."""

    def endpoint(
        self, *, request: "ConnectionRequest | None" = ..., **options: Unpack[EndpointOptions]
    ) -> Endpoint: ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Q = TypeVar("Q", bound=Accepting, default=Any)
else:
    from typing import TypeVar

    Q = TypeVar("Q")


def _private_data(data: bytes, info: Info, operation: str) -> bytes:
    """What the other side is told, refused when it is too long."""
    said = plain_bytes(data, operation)
    if len(said) > info.max_private_data:
        text = f"{len(said)} bytes of private data; {info.max_private_data} at most"
        raise failure(codes.EMSGSIZE, text=text, operation=operation, provider=info.provider)
    return said


def _check_address(endpoint: Endpoint, listened: Address) -> None:
    """Refuse an endpoint that is not where the listener was."""
    provider, address = endpoint.provider, endpoint.address
    if address.raw(provider) != listened.raw(provider):
        raise NotSupported(
            f"{provider} opens the endpoint at {address}; the listener was at {listened}",
            operation="connect",
            provider=provider,
            remedy="connect from domain.endpoint(), where the address does not matter",
        )


class ConnectionRequest(ProcessBound):
    """Somebody asks a listener for a connection. Made by :meth:`PassiveEndpoint.wait` and its like.

    One that is neither accepted nor rejected ends refused when the listener is closed.
    """

    __slots__ = ("_listener", "address", "data", "handle")

    _instead = "answer it in the process of its listener"

    def __init__(self, listener: "PassiveEndpoint", handle: int, data: bytes, address: Address) -> None:
        self._listener = listener
        self.handle = handle
        """What the event calls it."""
        self.data = data
        """Private data: what the other side said."""
        self.address = address
        """Of the endpoint that asks."""

    @property
    def listener(self) -> "PassiveEndpoint":
        """Who was asked."""
        return self._listener

    @property
    def info(self) -> Info:
        """Capabilities and limits of the endpoint that it will be."""
        info: Info = self._listener.domain.info
        return info

    def accept(self, *, data: bytes = b"", **options: Unpack[EndpointOptions]) -> Endpoint:
        """Open an endpoint and accept with it.

        To post receives before the other side may send, open the endpoint with ``domain.endpoint(request=…)``
        and call its :meth:`~Endpoint.accept`.

        Parameters
        ----------
        data : bytes
            What the other side's :meth:`Endpoint.connect` returns, up to ``info.max_private_data`` bytes.
        **options
            As of :class:`Endpoint`.

        Returns
        -------
        Endpoint
            Enabled, its connection made or about to be.

        Raises
        ------
        InvalidArgument
            When the request was answered before.
        MessageTooLong
            When `data` is too long; the request stays.
        """
        refuse_unknown(ConnectionRequest.accept, options, EndpointOptions)
        said = _private_data(data, self.info, "accept")
        endpoint: Endpoint = self._listener.domain.endpoint(request=self, **options)
        try:
            endpoint.enable().accept(data=said)
        except BaseException:
            endpoint.close()
            raise
        return endpoint

    def reject(self, *, data: bytes = b"") -> None:
        """Say no.

        Parameters
        ----------
        data : bytes
            What the other side finds in its :class:`~ofipy.ConnectionRefused`, up to ``info.max_private_data`` bytes.

        Raises
        ------
        InvalidArgument
            When the request was answered before.
        MessageTooLong
            When `data` is too long; the request stays.
        """
        said = plain_bytes(data, "reject")
        result = lib.ofp_passive_reject(self._listener._pointer("reject"), self.handle, said, len(said))
        if result == -codes.ENOENT:
            raise answered("reject", self.info.provider)
        check(result, operation="reject", provider=self.info.provider)

    def __repr__(self) -> str:
        return f"<ConnectionRequest of {self.address}>"


class PassiveEndpoint(Child[Q]):
    """Listens for connection requests (fi_endpoint(3), fi_passive_ep).

    Made by :func:`ofipy.listen` or :meth:`Domain.passive_endpoint`.

    Parameters
    ----------
    domain : Domain
        Of an info of type ``msg``; the accepted endpoints belong to it.
    service : int or str, optional
        Port, or name that stands for one, at which others find it. Default: any; :attr:`address` tells.
    eq : EventQueue, optional
        What gets the requests, as events of kind ``CONNREQ``: :meth:`request` reads them. Default: one of its own,
        which :meth:`wait`, :meth:`next` and ``async for`` read.
    backlog : int, optional
        Requests unanswered at a time, 1 to 2**24; what is beyond is refused. Default: 1024.
    """

    __slots__ = ("_eq", "_has_own_queue", "_owned")

    _instead = "send listener.address; the other process connects to it"

    def __init__(
        self,
        domain: Q,
        *,
        service: int | str | None = None,
        eq: EventQueue | None = None,
        backlog: int | None = None,
    ) -> None:
        check_owner(domain, eq, "eq", "passive_endpoint")
        provider = domain.provider
        self._domain = domain
        self._has_own_queue = eq is None
        self._eq = domain.event_queue() if eq is None else eq
        self._owned: Resource | None = None  # closed with the listener
        name = ffi.NULL
        if service is not None:
            name = ffi.new("char[]", service_text(service, "passive_endpoint").encode())
        attributes = ffi.new(
            "struct ofp_passive_attr *",
            {
                "eq": self._eq._pointer("passive_endpoint"),
                "service": name,
                "backlog": limit("backlog", backlog),
            },
        )
        result, text = ffi.new("struct ofp_passive **"), Text()
        with Opening(lambda: result[0], lib.ofp_passive_retire, lib.ofp_passive_free) as opening:
            opened = lib.ofp_passive_open(
                domain._pointer("passive_endpoint"), attributes, result, text.pointer, text.size
            )
            check(opened, text=text, operation="open a listener", provider=provider)

            def close(pointer: Any) -> None:
                check(lib.ofp_passive_retire(pointer), operation="close a listener", provider=provider)

            parents = (domain._core, self._eq._core)
            self._own(Handle(opening.hold(), close, parents, "listener", opening=opening))

    def listen(self) -> None:
        """Take requests from now on. A second call does nothing.

        Raises
        ------
        FabricError
            When the provider refuses.
        """
        result = lib.ofp_passive_listen(self._pointer("listen"))
        check(result, operation="listen", provider=self._domain.provider)

    @property
    def fabric(self) -> Any:
        """The fabric of its domain."""
        return self._domain.fabric

    @property
    def eq(self) -> EventQueue:
        """What gets the requests."""
        return self._eq

    @property
    def id(self) -> int:
        """What events call it; unique among the endpoints of its domain."""
        return int(lib.ofp_passive_id(self._pointer("id")))

    @property
    def address(self) -> Address:
        """Where others reach it; ``bytes()`` and ``str()`` of it travel."""
        provider = self._domain.provider
        pointer = self._pointer("address")
        name = read_name(lambda *room: lib.ofp_passive_address(pointer, *room), "address", provider)
        return Address.named(provider, name, host=host_id())

    def request(self, event: Event) -> ConnectionRequest:
        """The request behind an event of kind ``CONNREQ``.

        Raises
        ------
        InvalidArgument
            When it is another event, or the request was answered before.
        """
        provider = self._domain.provider
        if event.kind is not EventKind.CONNREQ:
            raise InvalidArgument(
                f"an event of kind {event.kind.name}; CONNREQ is meant", operation="request"
            )
        pointer = self._pointer("request")

        def name_of_requester(*room: Any) -> int:
            result: int = lib.ofp_passive_requester(pointer, event.handle, *room)
            if result == -codes.ENOENT:
                raise answered("request", provider)
            return result

        address = Address.named(provider, read_name(name_of_requester, "request", provider))
        return ConnectionRequest(self, event.handle, event.data, address)

    def wait(self, timeout: float | None = None) -> ConnectionRequest:
        """Wait for a request.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None: for ever.

        Raises
        ------
        TimedOut
            When the time is over.
        InvalidArgument
            When the listener was given an event queue: read that one, and call :meth:`request`.
        """
        self._need_own_queue("wait")
        return self._eq._wait_for(self.request, timeout)

    async def next(self) -> ConnectionRequest:
        """Await a request; cancelling this loses none.

        Raises
        ------
        InvalidArgument
            When the listener was given an event queue: await that one, and call :meth:`request`.
        """
        self._need_own_queue("next")
        return self.request(await self._eq.next())

    async def __aiter__(self) -> AsyncIterator[ConnectionRequest]:
        """Await requests for ever: ``async for request in listener``."""
        while True:
            yield await self.next()

    def _handles(self) -> list[Handle]:
        # A listener of ofipy.listen() closes its domain and fabric too, and with them the connections.
        return super()._handles() + (self._owned._handles() if self._owned is not None else [])

    def connect(
        self, address: Address | bytes | str, *, data: bytes = b"", **options: Unpack[ConnectOptions]
    ) -> Endpoint:
        """Stop listening, and ask another listener for a connection, as the endpoint at this address.

        The listener is closed: requests that nobody answered are refused. Then an endpoint is opened at its address.
        The outcome comes as an event of kind ``CONNECTED`` to the event queue `eq`, if one is given; sends wait for it,
        and fail when the other side refuses.

        Parameters
        ----------
        address : Address, bytes or str
            Of the other listener, as of :meth:`Endpoint.connect`.
        data : bytes
            What the other listener is told with the request, up to ``info.max_private_data`` bytes.
        **options
            As of :class:`Endpoint`; its service is the listener's.

        Returns
        -------
        Endpoint
            Enabled, at the address that the listener had. Connections that the listener accepted stay. Of a listener
            made by :func:`ofipy.listen` the endpoint takes over domain and fabric: its ``close()`` closes them.

        Raises
        ------
        InvalidArgument, Unreachable
            When the address cannot be understood, or not be reached by this provider; the listener stays.
        MessageTooLong
            When `data` is too long; the listener stays.
        NotSupported
            When the provider has no such options; the listener stays. When it gives the endpoint another address; the
            listener is closed.
        AddressInUse
            When another endpoint took the address in between; the listener is closed.
        """
        refuse_unknown(PassiveEndpoint.connect, options, ConnectOptions)
        domain, own = self._domain, self.address
        target = resolve(domain.provider, address, domain.info)
        said = _private_data(data, domain.info, "connect")
        endpoint: Endpoint = domain.endpoint(**options)
        endpoint._attributes.listener_service = split_host_port(str(own))[1]
        endpoint._attributes.check_traces()
        # The listener alone: connections that it accepted, and the objects of ofipy.listen(), stay.
        self._core.close()
        endpoint._owned, self._owned = self._owned, None
        try:
            endpoint.enable()
            _check_address(endpoint, own)
            endpoint.connect(target, data=said)
        except BaseException:
            endpoint.close()
            raise
        return endpoint

    def _closed(self) -> None:
        if self._has_own_queue:
            try:
                self._eq.close()
            except FabricError:
                return

    def _need_own_queue(self, operation: str) -> None:
        if not self._has_own_queue:
            raise InvalidArgument(
                "the listener's requests go to the event queue that it was given",
                operation=operation,
                remedy="read that queue, and pass the event to request()",
            )

    def __repr__(self) -> str:
        return f"<PassiveEndpoint {'closed' if self.closed else self.address}>"
