# SPDX-License-Identifier: BSD-3-Clause
"""Receive contexts that several endpoints share."""

import weakref
from typing import TYPE_CHECKING, Any

from ofipy._base.binding import check, ffi, lib
from ofipy._base.errors import FabricError, NotSupported
from ofipy._base.flags import EndpointType
from ofipy._base.lifetime import Handle, Opening, Resource
from ofipy._base.limits import limit
from ofipy._base.owner import check_owner
from ofipy._completion.cq import CompletionQueue
from ofipy._discovery.av import PEER_ANY, PEER_UNKNOWN, AddressVector
from ofipy._operations.messaging import Messaging
from ofipy._operations.multi_receive import MultiReceiving
from ofipy._operations.poster import CLOSED, Poster, make_poster
from ofipy._operations.posting import Posting

if TYPE_CHECKING:
    from ofipy._discovery.av import Peer
    from ofipy._objects.endpoint import Endpoint
    from ofipy._objects.fabric import Domain

__all__ = ["ReceiveContext"]


class ReceiveContext(Resource, Messaging, MultiReceiving, Posting):
    """Receives that take messages of several endpoints (fi_endpoint(3), fi_srx_context).

    Made by :meth:`Domain.receive_context`; endpoints are bound with ``domain.endpoint(rx=context)``. Receives are
    posted here instead of at the endpoints, with the same methods; sending is for the endpoints. A posted receive
    completes in the queue of the endpoint whose message it took, which its completion names. Closing an endpoint
    leaves the receives posted; messages of that endpoint that nobody received are dropped.
    """

    __slots__ = (
        "_av",
        "_cq",
        "_domain",
        "_endpoints",
        "_handle",
        "_memory",
        "_poster",
        "_vector",
    )

    _warns = False  # its domain does

    def __init__(
        self,
        domain: "Domain",
        *,
        cq: CompletionQueue | None = None,
        av: AddressVector | None = None,
        unexpected_size: int | None = None,
        min_multi_recv: int | None = None,
    ) -> None:
        for name, thing in (("cq", cq), ("av", av)):
            check_owner(domain, thing, name, "receive_context")
        self._handle: Any = None
        self._poster: Poster = CLOSED
        self._domain = domain
        self._memory = domain._memory
        self._cq = cq if cq is not None else domain.cq()
        if av is None and domain.info.ep_type is not EndpointType.MSG:
            av = domain.av()
        self._av = av
        self._vector: weakref.ref[Any] = weakref.ref(self) if av is None else av._reference
        self._endpoints: weakref.WeakValueDictionary[int, Endpoint] = weakref.WeakValueDictionary()
        provider = domain.provider
        attributes = ffi.new(
            "struct ofp_receive_context_attr *",
            {
                "cq": self._cq._pointer("receive_context"),
                "av": self._av._pointer("receive_context") if self._av is not None else ffi.NULL,
                "unexpected_limit": limit("unexpected_size", unexpected_size),
                "min_multi_recv": limit("min_multi_recv", min_multi_recv),
            },
        )
        result = ffi.new("struct ofp_endpoint **")
        with Opening(lambda: result[0], lib.ofp_receive_context_retire) as opening:
            opened = lib.ofp_receive_context_open(domain._pointer("receive_context"), attributes, result)
            check(opened, operation="open a receive context", provider=provider)

            def close(pointer: Any) -> None:
                check(
                    lib.ofp_receive_context_retire(pointer),
                    operation="close a receive context",
                    provider=provider,
                )

            self._handle = ffi.gc(result[0], lib.ofp_endpoint_free)
            parents = dict.fromkeys((domain._core, self._cq._core))
            if self._av is not None:
                parents[self._av._core] = None
            self._own(Handle(self._handle, close, tuple(parents), "receive context", opening=opening))
        self._poster = make_poster(self._handle, domain, self._vector)
        self._cq._endpoints[self.id] = self

    @property
    def domain(self) -> "Domain":
        """What it was opened from."""
        return self._domain

    @property
    def cq(self) -> CompletionQueue:
        """Where posted receives end that took no message, such as cancelled ones."""
        return self._cq

    @property
    def av(self) -> AddressVector:
        """The peers of its endpoints.

        Raises
        ------
        NotSupported
            When those are of type ``msg``: each has one peer of its own.
        """
        if self._av is None:
            raise NotSupported("endpoints of type msg have no address vector", provider=self.provider)
        return self._av

    @property
    def provider(self) -> str:
        """Name of the provider."""
        return self._domain.provider

    @property
    def id(self) -> int:
        """What completion records call it; unique among the endpoints of its domain."""
        return int(lib.ofp_endpoint_id(self._pointer("id")))

    def _closed(self) -> None:
        self._handle = None
        self._poster.close(None)
        # Whoever awaits one of its requests learns that it was cancelled.
        if self._cq._core.is_open and not self._cq._core.is_forked:
            try:
                self._cq._drain_finished()
            except FabricError:
                return

    def _peer_text(self, peer: int) -> str | None:
        """A peer's address for messages, as far as it is known."""
        if self._av is None or peer in (PEER_ANY, PEER_UNKNOWN) or not isinstance(peer, int):
            return None
        try:
            return str(self._av.address(peer))
        except (FabricError, OverflowError):
            return f"peer {int(peer)}"

    def _sender(self, number: int) -> "Peer | None":
        """The sender of a message to the endpoint of this number, when the message's completion does not name it."""
        endpoint = self._endpoints.get(number)
        return endpoint._only if endpoint is not None else None

    def __repr__(self) -> str:
        return f"<ReceiveContext of {self.provider}{' closed' if self.closed else ''}>"
