# SPDX-License-Identifier: BSD-3-Clause
"""Multi-receive buffers: one buffer that takes message after message.

The request in C finishes once for each message; what it says is taken one completion at a time, and the one that says
that the buffer is released is the last. What was taken waits in the object, in C, until it is looked at, so that
neither a second thread nor Ctrl-C loses one.
"""

from __future__ import annotations

import errno as codes
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Self

from ofipy._base.binding import failure, ffi, lib
from ofipy._base.errors import BufferTypeError, Canceled, TimedOut
from ofipy._base.flags import Flag, Op
from ofipy._base.lifetime import ProcessBound
from ofipy._base.record import Record, set_field
from ofipy._discovery.av import PEER_ANY, own_peer
from ofipy._memory.buffers import local_memory, make_record
from ofipy._operations.initiator import Initiator, start
from ofipy._requests import MANY, RequestBase

if TYPE_CHECKING:
    from ofipy._discovery.av import Peer
    from ofipy._memory.accepted import Memory

__all__ = ["MessageView", "MultiReceive", "recv_many", "trecv_many"]

_RELEASED: int = lib.OFP_COMPLETED_MULTI_RECV
_UNKNOWN: int = lib.OFP_PEER_UNKNOWN
_HAS_DATA: int = lib.OFP_COMPLETED_REMOTE_CQ_DATA
_ROW = ffi.typeof("struct ofp_completion *")


class MessageView(ProcessBound, Record):
    """A message in a multi-receive buffer."""

    data: memoryview
    """The payload: a part of the buffer, valid as long as the program does not write there."""
    source: Peer | None
    """The sender, None when it has no address here."""
    tag: int
    """0 for a message without."""
    length: int
    """Bytes of `data`."""
    offset: int
    """Bytes, where in the buffer it begins."""
    remote_data: int | None
    """Remote CQ data that came with it, None without."""

    def __init__(
        self,
        data: memoryview,
        source: Peer | None,
        tag: int,
        length: int,
        offset: int,
        remote_data: int | None,
    ) -> None:
        set_field(self, "data", data)
        set_field(self, "source", source)
        set_field(self, "tag", tag)
        set_field(self, "length", length)
        set_field(self, "offset", offset)
        set_field(self, "remote_data", remote_data)

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return bytes(self.data)


class MultiReceive(RequestBase, ProcessBound):
    """A buffer that takes message after message; made by ``recv_many`` and ``trecv_many``.

    Iterate over it, with ``for`` or ``async for``, to get a :class:`MessageView` for each message. The iteration ends
    when the buffer is released: too little room was left in it, or it was cancelled. Messages follow each other in the
    buffer without gaps, and none is split: one that does not fit into what is left goes to the next receive.

    As a context manager it is cancelled at the end of the block. Nobody may write into the buffer before
    :attr:`released`.
    """

    __slots__ = ("_canceled", "_view")

    _canceled: bool
    _view: memoryview

    @property
    def released(self) -> bool:
        """Whether every message was taken and the buffer is the program's again."""
        return self._over and not self._rows

    def next(self, timeout: float | None = None) -> MessageView | None:
        """Wait for the next message.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None: for ever.

        Returns
        -------
        MessageView or None
            None: the buffer is released, no more will come.

        Raises
        ------
        TimedOut
            When the time is over; the buffer stays posted.
        Truncated
            When a message is longer than the whole buffer.
        PeerLost and other FabricError
            When one message was lost on its way; others may follow.
        Canceled
            When the endpoint was closed.
        """
        while not self._is_empty():
            if not self._await(timeout):
                raise TimedOut(f"no message within {timeout:g} s", **self._context())
            message: MessageView | None = self._next_message
            if message is not None:
                return message
        return None

    def cancel(self) -> bool:
        """Take the buffer back; messages that are in it, or on their way into it, still come out of the iteration.

        Returns
        -------
        bool
            False: it is full, or released already.
        """
        # Before the call: Ctrl-C may come up as it returns.
        before, self._canceled = self._canceled, True
        result = self._cancel()
        if result != 0:
            self._canceled = before
        if result in (-codes.ENOENT, -codes.ECANCELED):
            return False
        if result < 0:
            raise failure(result, **self._context())
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def __iter__(self) -> Iterator[MessageView]:
        return self

    def __next__(self) -> MessageView:
        message = self.next()
        if message is None:
            raise StopIteration
        return message

    def __aiter__(self) -> AsyncIterator[MessageView]:
        return self

    async def __anext__(self) -> MessageView:
        while not self._is_empty():
            await self._news()
            message: MessageView | None = self._next_message
            if message is not None:
                return message
        raise StopAsyncIteration

    def __repr__(self) -> str:
        return f"<MultiReceive {self._operation} {'released' if self._over else 'posted'}>"

    # ------------------------------------------------------------------------------------------------ completions

    @property
    def _operation(self) -> str:
        return f"{Op(self._op).name.lower()}_many"

    def _is_empty(self) -> bool:
        """Whether nothing more will come. It raises once when the domain was closed."""
        if self._gone and not self._rows:
            self._gone = False
            raise Canceled("the domain was closed", **self._context())
        return self._over and not self._rows

    def _made(self, row: bytes) -> MessageView | None:
        """What one completion says."""
        completion = ffi.from_buffer(_ROW, row)
        flags = completion.flags
        if completion.error and not (flags == _RELEASED and self._canceled):
            code = completion.provider_error
            raise failure(
                completion.error,
                length=int(completion.length),
                room=self._room,
                provider_error=code,
                **self._context(),
            )
        if flags == _RELEASED:
            return None
        start, length, source = int(completion.buffer_offset), int(completion.length), int(completion.source)
        av = self._endpoint._peers.av
        return MessageView(
            self._view[start : start + length],
            self._endpoint._sender(completion.endpoint)
            if source == _UNKNOWN or av is None
            else av._peer(source),
            int(completion.tag),
            length,
            start,
            int(completion.data) if flags & _HAS_DATA else None,
        )

    def _refused(self, code: int) -> Any:
        raise failure(code, **self._context())

    def _context(self) -> dict[str, Any]:
        return {"operation": self._operation, "provider": self._endpoint.provider}


def trecv_many(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    incarnation: int | None = None,
) -> MultiReceive:
    """Receive tagged messages, one after the other, into one buffer (fi_tagged(3), FI_MULTI_RECV).

    They are matched, and lie in the buffer, in the order in which they were sent, and are told of as they are complete:
    one that moves in pieces may come after smaller ones behind it.

    Parameters
    ----------
    buffer : writable array or bytes-like
        One contiguous piece; released when less than the endpoint's `min_multi_recv` bytes are left in it.
    peer, tag, ignore, incarnation
        Of the messages, as of :meth:`Endpoint.trecv_into`.

    Returns
    -------
    MultiReceive
        Iterate over it.

    Raises
    ------
    NotSupported
        When the provider lacks the capability ``multi_recv``.
    BufferTypeError, InvalidArgument, UnknownPeer, Closed
        When an argument is wrong; nothing was posted.
    """
    return _receive_many(self, Op.TRECV, buffer, peer, tag, ignore, incarnation)


def recv_many(
    self: Initiator, buffer: Memory, peer: int | None = None, *, incarnation: int | None = None
) -> MultiReceive:
    """Receive messages without a tag into one buffer (fi_msg(3)); otherwise as :meth:`trecv_many`."""
    return _receive_many(self, Op.RECV, buffer, peer, 0, 0, incarnation)


def _receive_many(
    self: Initiator,
    op: Op,
    buffer: Memory,
    peer: int | None,
    tag: int,
    ignore: int,
    incarnation: int | None,
) -> MultiReceive:
    name = f"{op.name.lower()}_many"
    try:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # what is no buffer is refused below
    except TypeError as error:
        raise BufferTypeError(
            f"a {type(buffer).__name__}: {error}",
            operation=name,
            remedy="use one contiguous, writable buffer",
        ) from None
    memory = local_memory(buffer, domain=self._domain, writable=True, operation=name)
    number = PEER_ANY if peer is None else own_peer(self._peers.vector, peer, name)
    record = make_record(
        op,
        memory,
        peer=number,
        tag=tag,
        ignore=ignore,
        flags=Flag.MULTI_RECV.value,
        incarnation=incarnation,
    )
    many = start(self, MultiReceive, MANY, record, (view, memory.keep), op.name.lower(), number, None)
    many._view, many._canceled = view, False
    return many  # type: ignore[no-any-return]
