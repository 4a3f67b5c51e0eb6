# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints: where messages leave and arrive."""

import errno as codes
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from ofipy._address import Address, host_id
from ofipy._av import ONLY_PEER, PEER_ANY, PEER_UNKNOWN, AddressVector, Peer
from ofipy._binding import Text, check, drain_log, ffi, lib
from ofipy._completion import CompletionQueue
from ofipy._connection import ConnectedPeer, Connecting
from ofipy._counter import Counter, CounterClass, RegionClass, counter_array
from ofipy._errors import FabricError, InvalidArgument, NotSupported
from ofipy._event import EventQueue
from ofipy._flags import Access, Cap, EndpointType, Flag, complete_flags, parse_flags
from ofipy._info import Info
from ofipy._lifetime import CLOSE_TIMEOUT, Handle, Opening, Resource
from ofipy._limits import LIMITS, UINT64_MAX, limit, service_text, whole_number
from ofipy._messaging import Messaging
from ofipy._multi_receive import MultiReceiving
from ofipy._owner import check_owner
from ofipy._passive import ConnectionRequest, answered
from ofipy._poster import CLOSED, Poster, make_poster
from ofipy._posting import Posting
from ofipy._profile import ProfileRow, profile_of
from ofipy._refused import check_defaults, check_option
from ofipy._region import Region
from ofipy._remote_access import RemoteAccess
from ofipy._remote_atomics import RemoteAtomics

if TYPE_CHECKING:
    from ofipy._alias import EndpointAlias
    from ofipy._fabric import Domain, Fabric
    from ofipy._receive_context import ReceiveContext

__all__ = ["Endpoint", "EndpointStatistics"]


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


class Endpoint(Resource, Messaging, MultiReceiving, RemoteAccess, RemoteAtomics, Posting, Connecting):
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
        Port or name at which peers find it. Default: any.
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
        Default: ``OFIPY_UNEXPECTED_SIZE``. A transport that matches receives itself (``info.offloads_matching``) has
        bounds of its own.
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
    request : ConnectionRequest, optional
        Of the type ``msg``: whose connection it will be; :meth:`accept` answers, closing it before refuses.
    """

    __slots__ = (
        "_av",
        "_counters",
        "_cq",
        "_domain",
        "_eq",
        "_handle",
        "_memory",
        "_only",
        "_options",
        "_owned",
        "_poster",
        "_request",
        "_rx",
        "_send_cq",
        "_vector",
    )

    _instead = "send endpoint.address; the other process opens its own"

    def __init__(
        self,
        domain: "Domain",
        *,
        cq: CompletionQueue | None = None,
        av: AddressVector | None = None,
        rx: "ReceiveContext | None" = None,
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
        request: ConnectionRequest | None = None,
    ) -> None:
        for name, thing in (("cq", cq), ("av", av), ("rx", rx), ("send_cq", send_cq), ("eq", eq)):
            check_owner(domain, thing, name, "endpoint")
        self._handle: Any = (
            None  # what calls into C take; None while it is not enabled, and once it is closed
        )
        self._poster: Poster = CLOSED
        self._domain = domain
        self._memory = domain._memory
        self._cq = cq if cq is not None else domain.cq()
        connects = domain.info.ep_type is EndpointType.MSG
        if connects and av is not None:
            raise InvalidArgument("av=…; an endpoint of type msg has one peer and no address vector")
        if request is not None and request.listener.domain is not domain:
            raise InvalidArgument("request=…; it came to a listener of another domain")
        if rx is not None and av not in (None, rx._av):
            raise InvalidArgument("av=…; the endpoints of a receive context use its address vector")
        if av is None and not connects:
            av = domain.av() if rx is None else rx.av
        self._av = av
        # What its peers refer to, and no others.
        self._vector: weakref.ref[Any] = weakref.ref(self) if av is None else av._reference
        self._only: ConnectedPeer | None = None
        if connects:
            self._only = ConnectedPeer(ONLY_PEER)
            self._only._vector = self._vector
        self._request = request
        self._rx = rx
        self._send_cq = send_cq if send_cq is not None else self._cq
        self._owned: Fabric | None = None  # closed with the endpoint
        self._options: dict[str, Any] = {
            "tx_flags": complete_flags(complete) | parse_flags(Flag, tx_flags).value,
            "rx_flags": parse_flags(Flag, rx_flags).value,
            "tx_size": limit("tx_size", tx_size),
            "unexpected_limit": limit("unexpected_size", unexpected_size),
            "min_multi_recv": limit("min_multi_recv", min_multi_recv),
            "selective_completion": _selective_bits(selective_completion),
            "remote_events": remote_events,
            "service": service_text(service, "endpoint") if service is not None else None,
        }
        self._eq = eq
        self._counters = dict(counters or {})
        counter_array(domain, self._counters)

    def _asks_for_traces(self) -> str | None:
        """Which option wants to hear of what peers do to memory here."""
        if self._options["remote_events"]:
            return "remote_events=True"
        return next((f"counters[{name!r}]" for name in self._counters if name.startswith("remote_")), None)

    def enable(self) -> Self:
        """Open it: peers can reach it when this returns. A second call does nothing.

        Raises
        ------
        AddressInUse
            When another endpoint has the service.
        NotSupported
            For ``remote_events``, and counters of what peers read and write, where they do that without a trace: over a
            provider without :attr:`Cap.RMA_EVENT`.
        FabricError
            When the provider refuses, with its reason.
        """
        if self._is_enabled:
            self._pointer("enable")
            return self
        domain, provider = self._domain, self._domain.provider
        if (what := self._asks_for_traces()) and not self.info.caps & Cap.RMA_EVENT:
            raise NotSupported(
                f"{what}; peers access this memory without a trace",
                operation="enable",
                provider=provider,
                remedy="choose a provider with the capability rma_event",
            )
        service = self._options.pop("service")
        name = ffi.new("char[]", service.encode()) if service is not None else ffi.NULL
        attributes = ffi.new(
            "struct ofp_endpoint_attr *",
            {
                **self._options,
                "service": name,
                "eq": self._eq._pointer("enable") if self._eq is not None else ffi.NULL,
                "counters": counter_array(domain, self._counters),
                "av": self._av._pointer("enable") if self._av is not None else ffi.NULL,
                "request": self._request.handle if self._request is not None else 0,
                "tx_cq": self._send_cq._pointer("enable"),
                "rx_cq": self._cq._pointer("enable"),
                "rx_context": ffi.NULL if self._rx is None else self._rx._pointer("enable"),
            },
        )
        result, text = ffi.new("struct ofp_endpoint **"), Text()
        with Opening(lambda: result[0], lambda pointer: lib.ofp_endpoint_retire(pointer, 0)) as opening:
            opened = lib.ofp_endpoint_open(
                domain._pointer("enable"), attributes, result, text.pointer, text.size
            )
            if opened == -codes.ENOENT and self._request is not None:
                raise answered("enable", provider)
            check(opened, text=text, operation="open an endpoint", provider=provider)

            def close(pointer: Any) -> None:
                result = lib.ofp_endpoint_retire(pointer, int(CLOSE_TIMEOUT * 1e9))
                check(result, operation="close an endpoint", provider=provider)

            counters = (counter._core for counter in self._counters.values())
            events = () if self._eq is None else (self._eq._core,)
            parents = dict.fromkeys((domain._core, self._cq._core, self._send_cq._core, *counters, *events))
            if self._av is not None:
                parents[self._av._core] = None
            if self._rx is not None:
                parents[self._rx._core] = None
            self._handle = ffi.gc(result[0], lib.ofp_endpoint_free)
            self._own(Handle(self._handle, close, tuple(parents), "endpoint", opening=opening))
        self._poster = make_poster(self._handle, domain, self._vector)
        number = lib.ofp_endpoint_id(self._handle)
        self._cq._endpoints[number] = self._send_cq._endpoints[number] = self
        if self._rx is not None:
            self._rx._endpoints[number] = self
        drain_log()
        return self

    @property
    def _is_enabled(self) -> bool:
        return hasattr(self, "_core")

    # -------------------------------------------------------------------------------------------------------
    # parts

    @property
    def fabric(self) -> "Fabric":
        """The fabric of its domain."""
        return self._domain.fabric

    @property
    def domain(self) -> "Domain":
        """Whose device it uses."""
        return self._domain

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
        if self._av is None:
            raise NotSupported(
                "an endpoint of type msg has one peer and no address vector",
                operation="av",
                provider=self.provider,
                remedy="connect() it to the peer",
            )
        return self._av

    @property
    def info(self) -> Info:
        """Capabilities and limits."""
        return self._domain.info

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
        room, length = ffi.new("char[]", lib.OFP_ADDRESS_MAX), ffi.new("size_t *", lib.OFP_ADDRESS_MAX)
        result = lib.ofp_endpoint_address(self._pointer("address"), room, length)
        check(result, operation="address", provider=self.provider)
        return Address(((self.provider, bytes(ffi.buffer(room, length[0]))),), host_id())

    @property
    def tx_flags(self) -> Flag:
        """Flags that every send has by default."""
        return Flag(self.option("tx_flags"))

    @property
    def rx_flags(self) -> Flag:
        """Flags that every posted receive has by default."""
        return Flag(self.option("rx_flags"))

    def option(self, name: str) -> int:
        """Read an option (fi_endpoint(3), fi_getopt).

        Parameters
        ----------
        name : str
            ``min_multi_recv``, ``inject_size``, ``max_msg_size``, ``max_rma_size``, ``max_atomic_size`` (bytes),
            ``tx_size``, ``rx_size`` (operations), ``tx_flags`` or ``rx_flags`` (bits of Flag).

        Raises
        ------
        NotSupported
            When this endpoint has no such option.
        """
        value = ffi.new("uint64_t *")
        result = lib.ofp_endpoint_option_get(self._pointer("option"), name.encode(), value)
        check_option(result, name, operation="option", provider=self.provider)
        return int(value[0])

    def set_option(self, name: str, value: int) -> None:
        """Change an option, for operations from now on (fi_endpoint(3), fi_setopt).

        Parameters
        ----------
        name : str
            ``min_multi_recv``, ``tx_size``, ``tx_flags`` or ``rx_flags``.
        value : int
            As :meth:`option` returns it: ``min_multi_recv`` 1 to 2**40, ``tx_size`` 1 to 2**24.

        Raises
        ------
        NotSupported
            When this endpoint has no such option.
        AccessDenied
            When the option cannot be changed.
        InvalidArgument
            When the value does not fit.
        """
        range = LIMITS.get(name, (0, UINT64_MAX))
        number = whole_number(name, value, *range, operation="set_option")
        result = lib.ofp_endpoint_option_set(self._pointer("set_option"), name.encode(), number)
        check_option(result, name, operation="set_option", provider=self.provider)

    def alias(
        self,
        *,
        complete: str | None = None,
        tx_flags: Flag | str | None = None,
        rx_flags: Flag | str | None = None,
    ) -> "EndpointAlias":
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
        from ofipy._alias import EndpointAlias

        pointer = self._pointer("alias")
        if complete is None and tx_flags is None:
            sends = self.option("tx_flags")
        else:
            sends = complete_flags(complete) | parse_flags(Flag, tx_flags).value
        receives = self.option("rx_flags") if rx_flags is None else parse_flags(Flag, rx_flags).value
        result = ffi.new("struct ofp_endpoint **")
        with Opening(lambda: result[0], lambda alias: lib.ofp_endpoint_retire(alias, 0)) as opening:
            made = lib.ofp_endpoint_alias(pointer, sends, receives, result)
            check_defaults(made, operation="alias", provider=self.provider)
            return EndpointAlias(self, ffi.gc(result[0], lib.ofp_endpoint_free), opening)

    # ---------------------------------------------------------------------------------------------- peers and
    # memory

    def insert(self, address: Address | bytes | str) -> Peer:
        """Enter a peer; as :meth:`AddressVector.insert`."""
        return self.av.insert(address)

    def register(
        self,
        buffer: Any,
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
        dtype: npt.DTypeLike = np.uint8,
        *,
        access: Access | str | Iterable[Access | str] = Access.LOCAL,
        counters: Mapping[RegionClass, Counter] | None = None,
    ) -> npt.NDArray[Any]:
        """Allocate memory that the provider moves best; as :meth:`Domain.empty`."""
        return self._domain.empty(shape, dtype, access=access, counters=counters)

    def stats(self) -> EndpointStatistics:
        """Counters since it was opened."""
        record = ffi.new("struct ofp_endpoint_statistics *")
        check(
            lib.ofp_endpoint_statistics(self._pointer("stats"), record),
            operation="stats",
            provider=self.provider,
        )
        return EndpointStatistics(*(int(getattr(record, name)) for name in EndpointStatistics.__slots__))

    def profile(self) -> list[ProfileRow]:
        """What the hook ``profile`` has counted since it was opened: a row for each kind of operation and peer.

        Raises
        ------
        NotSupported
            When it was opened without that hook.

        Examples
        --------
        >>> with ofipy.open(hooks="profile") as ep:
        ...     ep.tsend(b"hello", ep.insert(ep.address), tag=1).wait()
        ...     row = ep.profile()[0]
        >>> row.operation, row.operations, row.bytes, row.sizes
        ('tsend', 1, 5, {4: 1})
        """
        return profile_of(self._pointer("profile"), self.provider)

    # ------------------------------------------------------------------------------------------------------
    # lifetime

    @property
    def closed(self) -> bool:
        """Whether it was closed, itself or with a parent."""
        return self._is_enabled and not self._core.is_open

    def close(self) -> None:
        """Close it; operations in flight end as cancelled. A second call does nothing.

        An endpoint of :func:`ofipy.open` closes its queue, address vector, domain and fabric too. In a forked
        child nothing happens: the endpoint is the parent's.
        """
        if self._is_enabled:
            super().close()
        if self._owned is not None:
            self._owned.close()

    def _closed(self) -> None:
        self._handle = None
        self._poster.close(None)
        # Whoever awaits one of its requests learns that it was cancelled.
        if self._cq._core.is_open and not self._cq._core.is_forked:
            try:
                self._cq._drain_finished()
            except FabricError:
                return

    def _pointer(self, operation: str) -> Any:
        if not self._is_enabled:
            raise InvalidArgument(
                "the endpoint is not enabled", operation=operation, remedy="call enable() first"
            )
        return super()._pointer(operation)

    def _peer_text(self, peer: int) -> str | None:
        """A peer's address for messages, as far as it is known."""
        try:
            if self._av is None:
                return str(self.peer_address)
            if peer in (PEER_ANY, PEER_UNKNOWN) or not isinstance(peer, int):
                return None
            return str(self._av.address(peer))
        except (FabricError, OverflowError):
            return f"peer {int(peer)}"

    def _sender(self, number: int) -> Peer | None:
        """The sender of a message to an endpoint, by its number, when the message's completion does not name it."""
        return self._only

    def __repr__(self) -> str:
        state = "closed" if self.closed else str(self.address) if self._is_enabled else "not enabled"
        return f"<Endpoint {state}>"


_SELECTIVE: dict[bool | str, int] = {
    False: 0,
    True: lib.OFP_SELECTIVE_TRANSMIT | lib.OFP_SELECTIVE_RECEIVE,
    "transmit": lib.OFP_SELECTIVE_TRANSMIT,
    "receive": lib.OFP_SELECTIVE_RECEIVE,
}


def _selective_bits(selective: bool | str) -> int:
    try:
        return _SELECTIVE[selective]
    except (KeyError, TypeError):
        raise InvalidArgument(
            f"selective_completion={selective!r}; True, False, 'transmit' or 'receive' is meant"
        ) from None
