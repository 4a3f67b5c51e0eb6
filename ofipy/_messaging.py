# SPDX-License-Identifier: BSD-3-Clause
"""The messages of an endpoint, one request each.

The first lines of ``tsend`` and ``trecv_into`` are the fast way: one call into C, which knows the buffers that most
programs use. Whatever does not fit there, a list of buffers, a strided array, a wrong argument, takes the
general way, which also says what is wrong.
"""

import errno as codes
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ofipy._av import ONLY_PEER, PEER_ANY, own_peer
from ofipy._binding import ffi, lib, nanoseconds
from ofipy._buffers import LocalMemory, local_memory, make_record
from ofipy._errors import InvalidArgument, NoMessage
from ofipy._flags import Flag, Op, complete_flags, parse_flags
from ofipy._poster import Poster
from ofipy._refused import refusal
from ofipy._request import Message, MessageRequest, PreparedRequest, Request, no_room, queue_is_full
from ofipy._requests import MESSAGE, PLAIN

if TYPE_CHECKING:
    import weakref

    from ofipy._av import AddressVector
    from ofipy._fabric import Domain

__all__ = ["Messaging"]

_HOLD = int(Flag.HOLD | Flag.CLAIM)
_DRAINED_AT_ONCE = 64

# Plain numbers and names: members of an enumeration cost ten times as much to look at.
_SEND, _RECV, _TSEND, _TRECV = int(Op.SEND), int(Op.RECV), int(Op.TSEND), int(Op.TRECV)
_NAMES = {int(op): op.name.lower() for op in Op}
_RECEIVES = frozenset((_RECV, _TRECV))
_PEEK, _HAS_DATA = int(Flag.PEEK), int(Flag.REMOTE_CQ_DATA)


class Messaging:
    """Sending and receiving; the part of :class:`~ofipy.Endpoint` that moves messages with requests.

    Every buffer stays alive and exported until its operation has finished, by the library. With a full transmit
    queue a send waits for room, for `timeout` seconds at most; where an event loop runs in this thread the call
    returns, and the operation itself waits in the core. Any thread may call, unless the domain is bound to one.
    """

    __slots__ = ()

    _handle: Any
    _poster: Poster
    _domain: "Domain"
    _av: "AddressVector | None"
    _vector: "weakref.ref[Any]"

    # -------------------------------------------------------------------------------------------------------
    # sending

    def tsend(
        self,
        buffer: Any,
        peer: int | None = ONLY_PEER,
        *,
        tag: int = 0,
        data: int | None = None,
        complete: str | None = None,
        flags: Flag | str | None = None,
        timeout: float | None = None,
    ) -> Request:
        """Send a tagged message.

        Parameters
        ----------
        buffer : Region, array, bytes-like, or list of them
            What to send. A region is the fastest spelling.
        peer : Peer or int
            To whom. A connected endpoint (type ``msg``) has one peer: it need not be named.
        tag : int
            64 bits.
        data : int, optional
            Remote CQ data: 64 bits that the receiver's completion carries.
        complete : str, optional
            When the request is finished: ``transmit``, ``delivery`` or ``match``. Default: when the buffer is
            reusable.
        flags : Flag or str, optional
            Such as ``fence``.
        timeout : float, optional
            Seconds to wait for room in a full transmit queue; None: for ever. Without effect where an event loop runs
            in this thread, since there the call never waits.

        Returns
        -------
        Request
            Maybe finished already.

        Raises
        ------
        BufferTypeError, InvalidArgument, UnknownPeer, Closed
            When an argument is wrong; nothing was sent.
        TimedOut
            When there was no room within the time; nothing was sent.
        Again
            When an event loop runs, and as many operations wait already as the transmit queue holds; nothing was sent.
        """
        if data is None and complete is None and flags is None and timeout is None:
            request: Request | None = self._poster.tsend(self, buffer, peer, tag)
            if request is not None:
                return request
        return self._start(_TSEND, buffer, peer, tag, 0, data, complete, flags, timeout)

    def send(
        self,
        buffer: Any,
        peer: int | None = ONLY_PEER,
        *,
        data: int | None = None,
        complete: str | None = None,
        flags: Flag | str | None = None,
        timeout: float | None = None,
    ) -> Request:
        """Send a message without a tag; otherwise as :meth:`tsend`."""
        return self._start(_SEND, buffer, peer, 0, 0, data, complete, flags, timeout)

    # -----------------------------------------------------------------------------------------------------
    # receiving

    def trecv_into(
        self,
        buffer: Any,
        peer: int | None = None,
        *,
        tag: int = 0,
        ignore: int = 0,
        timeout: float | None = None,
    ) -> Request:
        """Receive a tagged message into memory.

        Parameters
        ----------
        buffer : Region, writable array or bytes-like, or list of them
            Where to; not to be touched until the request has finished.
        peer : Peer or int, optional
            From whom. Default: from anyone.
        tag : int
            64 bits.
        ignore : int
            Bits of the tag that may differ.
        timeout : float, optional
            Seconds to wait where the transport has no room for the receive; as of :meth:`tsend`.

        Returns
        -------
        Request
            Its ``wait()`` returns itself, with ``length``, ``source``, ``tag`` and ``data``.

        Raises
        ------
        BufferTypeError, InvalidArgument, UnknownPeer, Closed
            When an argument is wrong; nothing was posted.
        """
        request: Request | None = None
        if ignore == 0 and timeout is None:
            request = self._poster.trecv(self, buffer, peer, tag)
        if request is None:
            request = self._start(_TRECV, buffer, peer, tag, ignore, None, None, None, timeout)
        # Python runs no signal handler from here to the caller's next instruction: had one raised before, the request
        # would have gone without this mark, and the receive with it.
        request._kept = True
        return request

    def recv_into(self, buffer: Any, peer: int | None = None, *, timeout: float | None = None) -> Request:
        """Receive a message without a tag into memory; otherwise as :meth:`trecv_into`."""
        request = self._start(_RECV, buffer, peer, 0, 0, None, None, None, timeout)
        request._kept = True  # as in trecv_into
        return request

    def trecv(
        self, peer: int | None = None, *, tag: int = 0, ignore: int = 0, timeout: float | None = None
    ) -> MessageRequest:
        """Receive a tagged message of any size.

        Parameters
        ----------
        peer : Peer or int, optional
            From whom. Default: from anyone.
        tag : int
            64 bits.
        ignore : int
            Bits of the tag that may differ.
        timeout : float, optional
            As of :meth:`trecv_into`.

        Returns
        -------
        MessageRequest
            Its ``wait()`` returns a :class:`Message`. Cancelling or dropping it loses no message.
        """
        return self._receive_any_size(_TRECV, peer, tag, ignore, timeout)

    def recv(self, peer: int | None = None, *, timeout: float | None = None) -> MessageRequest:
        """Receive a message without a tag, of any size; otherwise as :meth:`trecv`."""
        return self._receive_any_size(_RECV, peer, 0, 0, timeout)

    async def messages(
        self, peer: int | None = None, *, tag: int = 0, ignore: int = 0
    ) -> AsyncIterator[Message]:
        """Receive tagged messages for ever: ``async for message in ep.messages(tag=7)``.

        One wake-up of the event loop takes every message that is there. Leaving the loop loses none.

        Parameters
        ----------
        peer, tag, ignore
            As of :meth:`trecv`.
        """
        import asyncio

        while True:
            # Messages that are there come without sleeping; other tasks have their turn now and then.
            for _ in range(_DRAINED_AT_ONCE):
                yield await self.trecv(peer, tag=tag, ignore=ignore)
            await asyncio.sleep(0)

    def probe(
        self,
        peer: int | None = None,
        *,
        tag: int = 0,
        ignore: int = 0,
        tagged: bool = True,
        discard: bool = False,
    ) -> Request | None:
        """Look for a message that has arrived and that no receive has taken.

        Parameters
        ----------
        peer, tag, ignore
            As of :meth:`trecv`.
        tagged : bool
            False: among messages without a tag.
        discard : bool
            Drop the message.

        Returns
        -------
        Request or None
            With ``length``, ``source``, ``tag`` and ``data`` of the message. None: there is none.
        """
        flags = Flag.PEEK | Flag.DISCARD if discard else Flag.PEEK
        lib.ofp_domain_progress(self._domain._pointer("probe"))
        found = self._start(_TRECV if tagged else _RECV, b"", peer, tag, ignore, None, None, flags, None)
        try:
            found.wait()
        except NoMessage:
            return None
        return found

    # ------------------------------------------------------------------------------------------------------
    # prepared

    def prepare_tsend(
        self,
        buffer: Any,
        peer: int | None = ONLY_PEER,
        *,
        tag: int = 0,
        data: int | None = None,
        complete: str | None = None,
        flags: Flag | str | None = None,
    ) -> PreparedRequest:
        """Prepare a tagged send that is started many times; arguments as of :meth:`tsend`."""
        return self._prepare(_TSEND, buffer, peer, tag, 0, data, complete, flags)

    def prepare_send(
        self,
        buffer: Any,
        peer: int | None = ONLY_PEER,
        *,
        data: int | None = None,
        complete: str | None = None,
        flags: Flag | str | None = None,
    ) -> PreparedRequest:
        """Prepare a send that is started many times; arguments as of :meth:`send`."""
        return self._prepare(_SEND, buffer, peer, 0, 0, data, complete, flags)

    def prepare_trecv(
        self, buffer: Any, peer: int | None = None, *, tag: int = 0, ignore: int = 0
    ) -> PreparedRequest:
        """Prepare a tagged receive that is started many times; arguments as of :meth:`trecv_into`."""
        return self._prepare(_TRECV, buffer, peer, tag, ignore, None, None, None)

    def prepare_recv(self, buffer: Any, peer: int | None = None) -> PreparedRequest:
        """Prepare a receive that is started many times; arguments as of :meth:`recv_into`."""
        return self._prepare(_RECV, buffer, peer, 0, 0, None, None, None)

    # ---------------------------------------------------------------------------------------------------
    # general way

    def _pointer(self, operation: str) -> Any:
        raise NotImplementedError

    def _peer_text(self, peer: int) -> str | None:
        raise NotImplementedError

    def _record(
        self,
        op: int,
        buffer: Any,
        peer: int | None,
        tag: int,
        ignore: int,
        data: int | None,
        complete: str | None,
        flags: Flag | str | None,
    ) -> tuple[Any, LocalMemory, int]:
        """Check the arguments and make a record; with what it points to, and the peer's number."""
        name = _NAMES[op]
        if self._handle is None:
            self._pointer(name)  # says why
        receives = op in _RECEIVES
        if peer is not None:
            peer = own_peer(self._vector, peer, name)
        if peer in (None, ONLY_PEER) and not receives:
            if self._av is not None:
                raise InvalidArgument("a send needs a Peer", operation=name)
            peer = ONLY_PEER
        number = PEER_ANY if peer is None else peer
        bits = 0 if flags is None else parse_flags(Flag, flags).value
        if complete is not None:
            bits |= complete_flags(complete)
        if data is not None:
            bits |= _HAS_DATA
        writable = receives and not bits & _PEEK
        memory = local_memory(buffer, domain=self._domain, writable=writable, operation=name)
        record = make_record(op, memory, peer=number, tag=tag, ignore=ignore, data=data or 0, flags=bits)
        return record, memory, number

    def _start(
        self,
        op: int,
        buffer: Any,
        peer: int | None,
        tag: int,
        ignore: int,
        data: int | None,
        complete: str | None,
        flags: Flag | str | None,
        timeout: float | None,
    ) -> Request:
        record, memory, number = self._record(op, buffer, peer, tag, ignore, data, complete, flags)
        keep = (memory.segments, memory.keep)
        return self._started(Request, PLAIN, record, keep, op, number, timeout)  # type: ignore[no-any-return]

    def _started(
        self, kind: type[Any], what: int, record: Any, keep: Any, op: int, peer: int, timeout: float | None
    ) -> Any:
        """Start the operation of a record; `keep` stays alive until it has finished."""
        name = _NAMES[op]
        self._pointer(name)
        started = self._poster.start(self, kind, what, ffi.buffer(record), keep, nanoseconds(timeout))
        if type(started) is not int:
            return started
        if started == -codes.EAGAIN:
            raise queue_is_full(self._domain, name)
        if started == -codes.ETIMEDOUT and timeout is not None:
            provider, text = self._domain.provider, self._peer_text(peer)
            raise no_room(timeout, operation=name, provider=provider, peer=text)
        raise refusal(started, record, domain=self._domain, operation=name, peer=self._peer_text(peer))

    def _receive_any_size(
        self, op: int, peer: int | None, tag: int, ignore: int, timeout: float | None
    ) -> MessageRequest:
        number = PEER_ANY if peer is None else own_peer(self._vector, peer, _NAMES[op])
        record = make_record(op, None, peer=number, tag=tag, ignore=ignore, flags=_HOLD)
        return self._started(MessageRequest, MESSAGE, record, None, op, number, timeout)  # type: ignore[no-any-return]

    def _prepare(
        self,
        op: int,
        buffer: Any,
        peer: int | None,
        tag: int,
        ignore: int,
        data: int | None,
        complete: str | None,
        flags: Flag | str | None,
    ) -> PreparedRequest:
        record, memory, number = self._record(op, buffer, peer, tag, ignore, data, complete, flags)
        name = _NAMES[op]
        # The record points to the segments for as long as it may be started.
        return self._prepared(record, (memory.segments, memory.keep), name, number)

    def _prepared(self, record: Any, keep: Any, name: str, peer: int) -> PreparedRequest:
        self._pointer(name)
        prepared = self._poster.prepare(self, PreparedRequest, ffi.buffer(record), keep)
        if type(prepared) is int:
            raise refusal(prepared, record, domain=self._domain, operation=name, peer=self._peer_text(peer))
        return prepared  # type: ignore[no-any-return]
