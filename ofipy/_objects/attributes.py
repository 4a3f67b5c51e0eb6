# SPDX-License-Identifier: BSD-3-Clause
"""What an endpoint is opened with: the objects that it is bound to, and its options as C has them."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from ofipy._base.binding import ffi, lib
from ofipy._base.errors import InvalidArgument, NotSupported
from ofipy._base.flags import Cap, EndpointType, Flag, complete_flags, parse_flags
from ofipy._base.lifetime import Handle
from ofipy._base.limits import limit, service_text, whole_number
from ofipy._base.owner import check_owner
from ofipy._completion.counter import Counter, CounterClass, counter_array
from ofipy._completion.cq import CompletionQueue
from ofipy._completion.eq import EventQueue
from ofipy._discovery.av import AddressVector
from ofipy._objects.parent import Parent
from ofipy._objects.receive_context import ReceiveContext

__all__ = ["ConnectionRequest", "EndpointAttributes"]

_SELECTIVE: dict[bool | str, int] = {
    False: 0,
    True: lib.OFP_SELECTIVE_TRANSMIT | lib.OFP_SELECTIVE_RECEIVE,
    "transmit": lib.OFP_SELECTIVE_TRANSMIT,
    "receive": lib.OFP_SELECTIVE_RECEIVE,
}


class ConnectionRequest(Protocol):
    """A connection request, as the endpoint sees it that answers."""

    handle: int

    @property
    def listener(self) -> Any: ...


class EndpointAttributes:
    """The arguments of :class:`~ofipy.Endpoint`, checked, and kept as long as the endpoint uses them.

    Raises
    ------
    InvalidArgument
        When one does not fit the domain, or another.
    """

    __slots__ = (
        "av",
        "connects",
        "counters",
        "cq",
        "domain",
        "eq",
        "listener_service",
        "numbers",
        "request",
        "rx",
        "send_cq",
        "service",
    )

    def __init__(
        self,
        domain: Parent,
        *,
        cq: CompletionQueue | None,
        av: AddressVector | None,
        rx: ReceiveContext | None,
        send_cq: CompletionQueue | None,
        service: int | str | None,
        complete: str | None,
        tx_flags: Flag | str | None,
        rx_flags: Flag | str | None,
        tx_size: int | None,
        unexpected_size: int | None,
        min_multi_recv: int | None,
        selective_completion: bool | Literal["transmit", "receive"],
        remote_events: bool,
        eq: EventQueue | None,
        counters: Mapping[CounterClass, Counter] | None,
        traffic_class: int | None,
        request: ConnectionRequest | None,
    ) -> None:
        for name, thing in (("cq", cq), ("av", av), ("rx", rx), ("send_cq", send_cq), ("eq", eq)):
            check_owner(domain, thing, name, "endpoint")
        self.domain = domain
        self.connects = domain.info.ep_type is EndpointType.MSG
        self.cq = cq if cq is not None else domain.cq()
        self.send_cq = send_cq if send_cq is not None else self.cq
        if self.connects and av is not None:
            raise InvalidArgument("av=…; an endpoint of type msg has one peer and no address vector")
        if request is not None and request.listener.domain is not domain:
            raise InvalidArgument(
                "request=…; it came to a listener of another domain",
                operation="endpoint",
                remedy="accept it with request.accept(), or open the endpoint in the listener's domain",
            )
        if rx is not None and av not in (None, rx._peers.av):
            raise InvalidArgument("av=…; the endpoints of a receive context use its address vector")
        if av is None and not self.connects:
            av = domain.av() if rx is None else rx.av
        self.av = av
        self.rx = rx
        self.eq = eq
        self.request = request
        self.numbers: dict[str, Any] = {
            "tx_flags": complete_flags(complete) | parse_flags(Flag, tx_flags).value,
            "rx_flags": parse_flags(Flag, rx_flags).value,
            "tx_size": limit("tx_size", tx_size),
            "unexpected_limit": limit("unexpected_size", unexpected_size),
            "min_multi_recv": limit("min_multi_recv", min_multi_recv),
            "selective_completion": _selective_bits(selective_completion),
            "remote_events": remote_events,
            "traffic_class": _traffic_class_bits(traffic_class),
        }
        self.service = service_text(service, "endpoint") if service is not None else None
        self.listener_service: str | None = None  # in its place: that of a listener that is closed
        self.counters = dict(counters or {})
        # Only to refuse a wrong one where it is named, and not first in enable().
        counter_array(domain, self.counters)

    def check_traces(self) -> None:
        """Refuse what wants to hear of accesses that leave no trace.

        Raises
        ------
        NotSupported
            Where the provider lacks the capability.
        """
        asking = "remote_events=True" if self.numbers["remote_events"] else None
        for name in self.counters:
            if asking is None and name.startswith("remote_"):
                asking = f"counters[{name!r}]"
        if asking is not None and not self.domain.info.caps & Cap.RMA_EVENT:
            raise NotSupported(
                f"{asking}; peers access this memory without a trace",
                operation="enable",
                provider=self.domain.provider,
                remedy="choose a provider with the capability rma_event",
            )

    def record(self) -> tuple[Any, Any]:
        """C's form of them, and what that points to."""
        service, listener_service = _text(self.service), _text(self.listener_service)
        record = ffi.new(
            "struct ofp_endpoint_attr *",
            {
                **self.numbers,
                "service": service,
                "listener_service": listener_service,
                "eq": _pointer(self.eq),
                "counters": counter_array(self.domain, self.counters),
                "av": _pointer(self.av),
                "request": self.request.handle if self.request is not None else 0,
                "tx_cq": _pointer(self.send_cq),
                "rx_cq": _pointer(self.cq),
                "rx_context": _pointer(self.rx),
            },
        )
        return record, (service, listener_service)

    def parents(self) -> tuple[Handle, ...]:
        """What closes the endpoint before itself, the domain first."""
        bound = (self.domain, self.cq, self.send_cq, *self.counters.values(), self.eq, self.av, self.rx)
        return tuple(dict.fromkeys(each._core for each in bound if each is not None))


def _text(text: str | None) -> Any:
    return ffi.NULL if text is None else ffi.new("char[]", text.encode())


def _pointer(thing: Any) -> Any:
    return ffi.NULL if thing is None else thing._pointer("enable")


def _traffic_class_bits(traffic_class: int | None) -> int:
    if traffic_class is None:
        return 0
    marked: int = lib.OFP_TRAFFIC_CLASS
    return marked | whole_number("traffic_class", traffic_class, 0, 255, operation="endpoint")


def _selective_bits(selective: bool | str) -> int:
    try:
        return _SELECTIVE[selective]
    except (KeyError, TypeError):
        raise InvalidArgument(
            f"selective_completion={selective!r}; True, False, 'transmit' or 'receive' is meant"
        ) from None
