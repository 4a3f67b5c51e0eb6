# SPDX-License-Identifier: BSD-3-Clause
"""Aliases: handles of an endpoint whose operations have other default flags."""

from typing import Any, Self

import numpy as np

from ofipy._base.binding import check, lib
from ofipy._base.lifetime import Handle, Opening, Resource
from ofipy._completion.counter import Counter
from ofipy._completion.request import Request
from ofipy._discovery.address import Address
from ofipy._objects.endpoint import Endpoint
from ofipy._operations.connection import Connection
from ofipy._operations.poster import make_poster

__all__ = ["EndpointAlias"]


class EndpointAlias(Endpoint):
    """Another handle of an endpoint, with default flags of its own; made by :meth:`Endpoint.alias`.

    A record's own completion level wins over the default of either. In all else it is the endpoint: its queue, peers,
    memory, address and statistics, and options other than ``tx_flags`` and ``rx_flags``. It ends with the endpoint, or
    before it.
    """

    # To requests `_handle` says that their endpoint is open; an alias may be closed before they have finished.
    __slots__ = ("_endpoint", "_shell")

    _warns = False  # its endpoint does

    def __init__(self, endpoint: Endpoint, pointer: Any, opening: Opening) -> None:
        if isinstance(endpoint, EndpointAlias):
            endpoint = endpoint.endpoint
        self._endpoint: Endpoint = endpoint
        self._shell = pointer
        self._domain, self._memory = endpoint._domain, endpoint._memory
        self._av, self._cq, self._vector = endpoint._av, endpoint._cq, endpoint._vector
        self._only = endpoint._only
        self._owned = None
        self._poster = make_poster(pointer, self._domain, self._vector)
        provider = endpoint.provider

        def close(pointer: Any) -> None:
            check(lib.ofp_endpoint_retire(pointer, 0), operation="close an alias", provider=provider)

        self._own(Handle(pointer, close, (endpoint._core,), "endpoint alias", opening=opening))

    @property
    def _handle(self) -> Any:
        return None if self._endpoint._handle is None else self._shell

    @property
    def endpoint(self) -> Endpoint:
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
        self,
        operations: np.ndarray[Any, np.dtype[np.void]],
        *,
        after: tuple[Counter, int] | None = None,
    ) -> int:
        """As :meth:`Endpoint.post`, with the flags of the alias."""
        self._pointer("post")
        return super().post(operations, after=after)

    def close(self) -> None:
        """Close the alias, not its endpoint; what was started through it goes on. A second call does nothing."""
        Resource.close(self)

    def _closed(self) -> None:
        self._poster.close(self._endpoint._poster)

    def __repr__(self) -> str:
        return f"<EndpointAlias {'closed' if self.closed else self.address}>"
