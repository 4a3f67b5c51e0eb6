# SPDX-License-Identifier: BSD-3-Clause
"""Connections: endpoints of type ``msg``, each with one peer (fi_cm(3)).

Such an endpoint has no address vector, and one connection in its life. Receives may be posted before; what is sent
while the other side has not answered leaves when it has. The peer that an operation names is ignored.
"""

import errno as codes
from typing import Any

from ofipy._base.binding import Text, check, drain_log, failure, ffi, lib
from ofipy._base.contents import plain_bytes
from ofipy._base.errors import Canceled, ConnectionRefused, FabricError, InvalidArgument
from ofipy._base.flags import EndpointType
from ofipy._completion.request import Request
from ofipy._discovery.address import Address, read_name, resolve
from ofipy._discovery.av import ONLY_PEER, Peer
from ofipy._operations.initiator import Initiator

__all__ = ["Connection", "accept", "answered", "connect", "only_peer", "peer_address", "shutdown"]

_ONCE = "open an endpoint for each connection"


class Connection(Request[bytes]):
    """A connection that is being made; of :meth:`Endpoint.connect` and :meth:`Endpoint.accept`.

    Its ``wait()`` and ``await`` return what the other side said, as bytes; nothing for the side that accepts.
    Dropping it leaves the connection alone.
    """

    __slots__ = ("_answer", "_name", "_reason")

    _answer: bytes
    _name: str
    _reason: str | None

    @property
    def _operation(self) -> str:
        return self._name

    def cancel(self) -> bool:
        """Do nothing, and say so: closing the endpoint, or :meth:`Endpoint.shutdown`, ends the handshake.

        Returns
        -------
        bool
            False.
        """
        return False

    def _note(self) -> None:
        """Keep what the other side said, which goes with the endpoint."""
        pointer = self._endpoint._handle
        if pointer is not None:
            room, text = ffi.new("char[]", lib.OFP_EVENT_DATA_MAX), Text()
            length = ffi.new("size_t *", lib.OFP_EVENT_DATA_MAX)
            lib.ofp_connection_status(pointer, room, length, text.pointer, text.size)
            self._answer = bytes(ffi.buffer(room, length[0]))
            self._reason = str(text) or None

    def _result(self) -> bytes:
        if self._gone:
            raise Canceled("the domain was closed before the other side answered", **self._context())
        if self._error:
            error = failure(self._error, text=self._reason, **self._context())
            if isinstance(error, ConnectionRefused):
                error.data = self._answer
            raise error
        return self._answer


class _Shutdown(Request):
    __slots__ = ()

    @property
    def _operation(self) -> str:
        return "shutdown"


def connect(self: Initiator, address: Address | bytes | str, *, data: bytes = b"") -> Connection:
    """Ask a listener for a connection.

    Parameters
    ----------
    address : Address, bytes or str
        Of the listener: its :attr:`PassiveEndpoint.address`, the bytes or the text of it, or ``host:port``.
    data : bytes
        What the listener is told with the request, up to ``info.max_private_data`` bytes.

    Returns
    -------
    Connection
        To be waited for, or awaited. The endpoint's event queue hears of the outcome too.

    Raises
    ------
    InvalidArgument, Unreachable
        When the address cannot be understood, or not be reached by this provider.
    MessageTooLong
        When `data` is too long.
    NotSupported
        When the endpoint is of another type.
    FabricError
        When it has, or had, a connection already.
    """
    pointer, provider = self._pointer("connect"), self._domain.provider
    _refuse_other_types(self, "connect")
    raw = resolve(provider, address, self._domain.info)
    said = plain_bytes(data, "connect")
    result = lib.ofp_connect(pointer, raw, len(raw), said, len(said))
    return _begun(self, result, "connect", len(said))


def accept(self: Initiator, *, data: bytes = b"") -> Connection:
    """Say yes to the request that the endpoint was opened from (``domain.endpoint(request=…)``).

    Parameters
    ----------
    data : bytes
        What the other side's :meth:`connect` returns, up to ``info.max_private_data`` bytes.

    Returns
    -------
    Connection
        To be waited for, or awaited; its result is empty. Sending need not wait for it.

    Raises
    ------
    InvalidArgument
        When the endpoint was not opened from a request.
    MessageTooLong
        When `data` is too long.
    FabricError
        When it has, or had, a connection already.
    """
    pointer = self._pointer("accept")
    _refuse_other_types(self, "accept")
    said = plain_bytes(data, "accept")
    return _begun(self, lib.ofp_accept(pointer, said, len(said)), "accept", len(said))


def shutdown(self: Initiator) -> Request:
    """End the connection: what was posted still leaves, then the other side is told.

    The other side gets an event of kind ``SHUTDOWN``. Here receives end as :class:`~ofipy.Canceled`, and sends are
    refused from now on.

    Returns
    -------
    Request
        Finished when all has left; to be waited for, or awaited, before the endpoint is closed. It ends as
        :class:`~ofipy.PeerLost` when the other side went before that. When that side has shut down, too, and
        nothing was left to send, it ends well, whoever was first.

    Raises
    ------
    NotConnected
        When there is no connection, or it was lost or ended here before.
    """
    pointer, provider = self._pointer("shutdown"), self._domain.provider
    _refuse_other_types(self, "shutdown")
    result = lib.ofp_shutdown(pointer)
    if result == -codes.ENOTCONN:
        raise _not_connected(self, pointer)
    check(result, operation="shutdown", provider=provider)
    handle = lib.ofp_shutdown_request(pointer)
    check(handle, operation="shutdown", provider=provider)
    drain_log()
    return _adopted(self, _Shutdown, handle)  # type: ignore[no-any-return]


def only_peer(self: Initiator) -> Peer:
    """The other side; see :attr:`Endpoint.peer`."""
    _refuse_other_types(self, "peer")
    assert self._peers.only is not None
    return self._peers.only


def peer_address(self: Initiator) -> Address:
    """Where the other side is; see :attr:`Endpoint.peer_address`."""
    provider = self._domain.provider
    pointer = self._pointer("peer_address")
    name = read_name(lambda *room: lib.ofp_peer_address(pointer, *room), "peer_address", provider)
    return Address.named(provider, name)


def _refuse_other_types(self: Initiator, operation: str) -> None:
    # The core says no more than that it is not supported.
    if self._domain.info.ep_type is not EndpointType.MSG:
        raise failure(
            codes.EOPNOTSUPP,
            text="the endpoint is not of type msg, so it is not connected to one peer",
            operation=operation,
            provider=self._domain.provider,
            remedy="choose an info with ep_type='msg'",
        )


def _not_connected(self: Initiator, pointer: Any) -> FabricError:
    """Why there is nothing to shut down: there was no connection, or it has ended."""
    provider = self._domain.provider
    room, text = ffi.new("char[]", lib.OFP_EVENT_DATA_MAX), Text()
    length = ffi.new("size_t *", lib.OFP_EVENT_DATA_MAX)
    error = lib.ofp_connection_status(pointer, room, length, text.pointer, text.size)
    if error == -codes.ENOTCONN:
        return failure(error, operation="shutdown", provider=provider)
    why = str(text) or ffi.string(lib.ofp_strerror(error)).decode()
    return failure(
        codes.ENOTCONN,
        text=f"the connection has ended already: {why}",
        remedy="open another endpoint for another connection",
        operation="shutdown",
        provider=provider,
    )


def _begun(self: Initiator, result: int, operation: str, length: int) -> Connection:
    provider = self._domain.provider
    if result == -codes.EMSGSIZE:
        limit = self._domain.info.max_private_data
        text = f"{length} bytes of private data; {limit} at most"
        raise failure(result, text=text, operation=operation, provider=provider)
    if result == -codes.EISCONN:
        text = "the endpoint has, or had, a connection"
        raise failure(result, text=text, operation=operation, provider=provider, remedy=_ONCE)
    if result == -codes.EINVAL and operation == "accept":
        text = "the endpoint was not opened from a connection request"
        raise failure(result, text=text, operation=operation, provider=provider)
    check(result, operation=operation, provider=provider)
    handle = lib.ofp_connection_request(self._pointer(operation))
    check(handle, operation=operation, provider=provider)
    connection: Connection = _adopted(self, Connection, handle)
    connection._answer, connection._name, connection._reason = b"", operation, None
    # The outcome may be there already.
    if not connection._watch(connection._note):
        connection._note()
    return connection


def _adopted(self: Initiator, kind: type[Any], handle: int) -> Any:
    """The request of a handle that C has made."""
    return self._poster.adopt(self, kind, handle, ONLY_PEER)


def answered(operation: str, provider: str) -> InvalidArgument:
    """What comes of a connection request that is no longer there."""
    return InvalidArgument(
        "the connection request was answered before",
        operation=operation,
        provider=provider,
        remedy="answer each once: accept() or reject()",
    )
