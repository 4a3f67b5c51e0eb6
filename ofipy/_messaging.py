# SPDX-License-Identifier: BSD-3-Clause
"""The messages of an endpoint, one request each.

The first lines of ``tsend`` and ``trecv_into`` are the fast way: one look at the buffer's exact type, one
call into C. Whatever does not fit there, a list of buffers, a strided array, a wrong argument, takes the
general way, which also says what is wrong.
"""

import errno as codes
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from ofipy._av import ONLY_PEER, PEER_ANY
from ofipy._binding import failure, lib
from ofipy._buffers import KEPT_SIZE, Export, LocalMemory, local_memory, make_record
from ofipy._errors import InvalidArgument, NoMessage
from ofipy._flags import Flag, Op, complete_flags, parse_flags
from ofipy._region import Region
from ofipy._request import COMPLETED, Message, MessageRequest, PreparedRequest, Request, RunningRequest

if TYPE_CHECKING:
    from ofipy._av import AddressVector
    from ofipy._fabric import Domain
    from ofipy._memory import DomainMemory

__all__ = ["Messaging"]

_tsend_buffer = lib.ofp_request_tsend_buffer
_new = object.__new__
_tsend_segment = lib.ofp_request_tsend_segment
_trecv_segment = lib.ofp_request_trecv_segment
_HOLD = int(Flag.HOLD | Flag.CLAIM)
_NOT_YET = (-codes.EAGAIN, -codes.EINTR)
_DRAINED_AT_ONCE = 64

# Plain numbers and names: members of an enumeration cost ten times as much to look at.
_SEND, _RECV, _TSEND, _TRECV = int(Op.SEND), int(Op.RECV), int(Op.TSEND), int(Op.TRECV)
_NAMES = {int(op): op.name.lower() for op in Op}
_RECEIVES = frozenset((_RECV, _TRECV))
_PEEK, _HAS_DATA = int(Flag.PEEK), int(Flag.REMOTE_CQ_DATA)


class Messaging:
    """Sending and receiving; the part of :class:`~ofipy.Endpoint` that moves messages with requests.

    Every buffer stays alive and exported until its operation has finished, by the library. A full transmit
    queue makes a send wait for room, it never fails for it. Any thread may call, unless the domain is bound
    to one.
    """

    __slots__ = ()

    _handle: Any
    _address: int | None
    _sent: Export
    _received: Export
    _domain: "Domain"
    _memory: "DomainMemory"
    _av: "AddressVector | None"
    _returned: "deque[MessageRequest]"

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

        Returns
        -------
        Request
            Maybe finished already.

        Raises
        ------
        BufferTypeError, InvalidArgument, UnknownPeer, Closed
            When an argument is wrong; nothing was sent.
        """
        if data is None and complete is None and flags is None:
            keep: Any = self._sent
            try:
                if keep.owner is buffer:
                    started = _tsend_segment(self._address, keep.segment, peer, tag)
                elif type(buffer) is Region:
                    keep = buffer
                    started = _tsend_segment(self._address, buffer._segment, peer, tag)
                elif type(buffer) is bytes:
                    keep = buffer
                    started = _tsend_buffer(self._handle, buffer, len(buffer), peer, tag)
                else:
                    keep = Export(buffer, writable=False, allocated=self._memory)
                    # Only arrays: a bytearray that is exported cannot grow.
                    if type(buffer) is ndarray and keep.length <= KEPT_SIZE:
                        self._sent = keep  # type: ignore[misc]
                    started = _tsend_segment(self._address, keep.segment, peer, tag)
            except (TypeError, ValueError, OverflowError, BufferError):
                started = -codes.EINVAL
            if started == 0:
                return COMPLETED
            if started > 0:
                return RunningRequest(self, started, keep, "tsend", peer)  # type: ignore[arg-type]
        return self._start(_TSEND, buffer, peer, tag, 0, data, complete, flags)

    def send(
        self,
        buffer: Any,
        peer: int | None = ONLY_PEER,
        *,
        data: int | None = None,
        complete: str | None = None,
        flags: Flag | str | None = None,
    ) -> Request:
        """Send a message without a tag; otherwise as :meth:`tsend`."""
        return self._start(_SEND, buffer, peer, 0, 0, data, complete, flags)

    # -----------------------------------------------------------------------------------------------------
    # receiving

    def trecv_into(self, buffer: Any, peer: int | None = None, *, tag: int = 0, ignore: int = 0) -> Request:
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

        Returns
        -------
        Request
            Its ``wait()`` returns itself, with ``length``, ``source``, ``tag`` and ``data``.

        Raises
        ------
        BufferTypeError, InvalidArgument, UnknownPeer, Closed
            When an argument is wrong; nothing was posted.
        """
        keep: Any
        try:
            source = PEER_ANY if peer is None else peer
            if type(buffer) is Region:
                keep, segment = buffer, buffer._segment
            else:
                keep = self._received
                if keep.owner is not buffer:
                    keep = Export(buffer, writable=True, allocated=self._memory)
                    if type(buffer) is ndarray and keep.length <= KEPT_SIZE:
                        self._received = keep  # type: ignore[misc]
                segment = keep.segment
            started = 0
            if ignore == 0:
                started = _trecv_segment(self._address, segment, source, tag)
        except (TypeError, ValueError, OverflowError, BufferError):
            started = -codes.EINVAL
        if started > 0:
            # As RunningRequest(…) would; the call of a Python function costs as much as all of these.
            request = _new(RunningRequest)
            request._endpoint = self  # type: ignore[assignment]
            request._handle = started
            request._buffer = keep
            request._operation = "trecv"
            request._peer = source
            request._tag = None if peer is None else tag
            request._completion = None
            return request
        return self._start(_TRECV, buffer, peer, tag, ignore, None, None, None)

    def recv_into(self, buffer: Any, peer: int | None = None) -> Request:
        """Receive a message without a tag into memory; otherwise as :meth:`trecv_into`."""
        return self._start(_RECV, buffer, peer, 0, 0, None, None, None)

    def trecv(self, peer: int | None = None, *, tag: int = 0, ignore: int = 0) -> MessageRequest:
        """Receive a tagged message of any size.

        Parameters
        ----------
        peer : Peer or int, optional
            From whom. Default: from anyone.
        tag : int
            64 bits.
        ignore : int
            Bits of the tag that may differ.

        Returns
        -------
        MessageRequest
            Its ``wait()`` returns a :class:`Message`. Cancelling or dropping it loses no message.
        """
        return self._receive_any_size(_TRECV, peer, tag, ignore)

    def recv(self, peer: int | None = None) -> MessageRequest:
        """Receive a message without a tag, of any size; otherwise as :meth:`trecv`."""
        return self._receive_any_size(_RECV, peer, 0, 0)

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
        found = self._start(_TRECV if tagged else Op.RECV, b"", peer, tag, ignore, None, None, flags)
        found._operation = "probe"
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
    ) -> Request:
        record, memory, number = self._record(op, buffer, peer, tag, ignore, data, complete, flags)
        started = self._started(record, op, number)
        if started == 0:
            return COMPLETED
        return RunningRequest(self, started, memory.keep, _NAMES[op], number)  # type: ignore[arg-type]

    def _started(self, record: Any, op: int, peer: int) -> int:
        """Start it, waiting for room; Ctrl-C leaves in between, with nothing started."""
        while True:
            started: int = lib.ofp_request_start(self._handle or self._pointer(_NAMES[op]), record)
            if started >= 0:
                return started
            if started not in _NOT_YET:
                raise failure(
                    started,
                    operation=_NAMES[op],
                    provider=self._domain.provider,
                    peer=self._peer_text(peer),
                )

    def _receive_any_size(self, op: int, peer: int | None, tag: int, ignore: int) -> MessageRequest:
        number = PEER_ANY if peer is None else peer
        if self._returned:
            for request in self._returned:
                if _matches(request, op, number, tag, ignore):
                    self._returned.remove(request)
                    return request
        record = make_record(op, None, peer=number, tag=tag, ignore=ignore, flags=_HOLD)
        started = self._started(record, op, number)
        return MessageRequest(self, started, _NAMES[op], number)  # type: ignore[arg-type]

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
        handle = lib.ofp_prepare(self._pointer(name), record)
        if handle < 0:
            raise failure(
                handle, operation=name, provider=self._domain.provider, peer=self._peer_text(number)
            )
        # The record points to the segments for as long as it may be started.
        keep = (memory.segments, memory.keep)
        return PreparedRequest(self, handle, keep, name, number)  # type: ignore[arg-type]


def _matches(request: MessageRequest, op: int, peer: int, tag: int, ignore: int) -> bool:
    """Whether a message that a cancelled receive gave back fits a new one."""
    if (request._operation == "trecv") is not (op == _TRECV):
        return False
    if peer != PEER_ANY and request.source != peer:
        return False
    return op == _RECV or (request.tag ^ tag) & ~ignore == 0
