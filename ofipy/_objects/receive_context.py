# SPDX-License-Identifier: BSD-3-Clause
"""Receive contexts that several endpoints share."""

import weakref
from typing import Any

from ofipy._base.binding import check, ffi, lib
from ofipy._base.errors import NotSupported
from ofipy._base.flags import EndpointType
from ofipy._base.lifetime import Handle, Opening
from ofipy._base.limits import limit
from ofipy._base.owner import check_owner
from ofipy._completion.cq import CompletionQueue
from ofipy._discovery.av import AddressVector, Peer
from ofipy._discovery.domain import Child
from ofipy._discovery.peers import Peers
from ofipy._objects.parent import P
from ofipy._operations import messaging, multi_receive, objects, posting
from ofipy._operations.poster import CLOSED, Poster, make_poster

__all__ = ["ReceiveContext"]


class ReceiveContext(Child[P]):
    """Receives that take messages of several endpoints (fi_endpoint(3), fi_srx_context).

    Made by :meth:`Domain.receive_context`; endpoints are bound with ``domain.endpoint(rx=context)``. Receives are
    posted here instead of at the endpoints, with the same methods; sending is for the endpoints. A posted receive
    completes in the queue of the endpoint whose message it took, which its completion names. Closing an endpoint
    leaves the receives posted; messages of that endpoint that nobody received are dropped.
    """

    __slots__ = ("_cq", "_endpoints", "_handle", "_peers", "_poster")

    _warns = False  # its domain does

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
    post = posting.post
    post_tsend = posting.post_tsend
    post_send = posting.post_send
    post_trecv = posting.post_trecv
    post_recv = posting.post_recv
    cancel = posting.cancel

    def __init__(
        self,
        domain: P,
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
        self._cq = cq if cq is not None else domain.cq()
        if av is None and domain.info.ep_type is not EndpointType.MSG:
            av = domain.av()
        self._peers = Peers(self, av, connects=False)
        self._endpoints: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        provider = domain.provider
        attributes = ffi.new(
            "struct ofp_receive_context_attr *",
            {
                "cq": self._cq._pointer("receive_context"),
                "av": av._pointer("receive_context") if av is not None else ffi.NULL,
                "unexpected_limit": limit("unexpected_size", unexpected_size),
                "min_multi_recv": limit("min_multi_recv", min_multi_recv),
            },
        )
        result = ffi.new("struct ofp_endpoint **")
        with Opening(lambda: result[0], lib.ofp_receive_context_retire, lib.ofp_endpoint_free) as opening:
            opened = lib.ofp_receive_context_open(domain._pointer("receive_context"), attributes, result)
            check(opened, operation="open a receive context", provider=provider)

            def close(pointer: Any) -> None:
                check(
                    lib.ofp_receive_context_retire(pointer),
                    operation="close a receive context",
                    provider=provider,
                )

            self._handle = opening.hold()
            # The domain first, with whose tree it closes; each once.
            parents = dict.fromkeys((domain._core, self._cq._core))
            if av is not None:
                parents[av._core] = None
            self._own(Handle(self._handle, close, tuple(parents), "receive context", opening=opening))
        self._poster = make_poster(self._handle, self._core.shell, domain, self._peers.vector)
        self._cq._endpoints[self.id] = self

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
        if self._peers.av is None:
            raise NotSupported(
                "endpoints of type msg have no address vector",
                provider=self.provider,
                remedy="connect() each of them to its peer",
            )
        return self._peers.av

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
        self._cq._tell_awaiting()

    def _peer_text(self, peer: int) -> str | None:
        return self._peers.text(peer)

    def _sender(self, number: int) -> Peer | None:
        """The sender of a message to the endpoint of this number, when the message's completion does not name it."""
        endpoint = self._endpoints.get(number)
        return endpoint._peers.only if endpoint is not None else None

    def __repr__(self) -> str:
        return f"<ReceiveContext of {self.provider}{' closed' if self.closed else ''}>"
