# SPDX-License-Identifier: BSD-3-Clause
"""Messages, one request each.

Every buffer stays alive and exported until its operation has finished, by the library. With a full transmit queue a
send waits for room, for `room_timeout` seconds at most; where an event loop runs in this thread the call returns, and
the operation itself waits in the core. Any thread may call, unless the domain is bound to one.

The fast way is one call into C, which knows the buffers and arguments that most programs use: the first lines of
``trecv_into``, and for sends the methods that ``begin_in_c`` makes. Whatever does not fit there, a list of
buffers, a strided array, a wrong argument, takes the general way, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ofipy._base.binding import lib
from ofipy._base.errors import NoMessage
from ofipy._base.flags import Flag, Op, complete_flags, parse_flags
from ofipy._base.renamed import remote_data_from, room_timeout_from
from ofipy._completion.request import (
    Message,
    MessageRequest,
    PreparedRequest,
    Request,
)
from ofipy._discovery.av import PEER_ANY, own_peer
from ofipy._memory.buffers import LocalMemory, local_memory, make_record
from ofipy._operations.begun_in_c import begin_methods_in_c
from ofipy._operations.initiator import Initiator, addressee, prepare, start
from ofipy._requests import MESSAGE, PLAIN, sender

if TYPE_CHECKING:
    from ofipy._memory.accepted import Memory

__all__ = [
    "begin_in_c",
    "messages",
    "prepare_recv",
    "prepare_send",
    "prepare_trecv",
    "prepare_tsend",
    "probe",
    "recv",
    "recv_into",
    "send",
    "trecv",
    "trecv_into",
    "tsend",
]

_HOLD = int(Flag.HOLD | Flag.CLAIM)
_DRAINED_AT_ONCE = 64

# Plain numbers and names: members of an enumeration cost ten times as much.
_SEND, _RECV, _TSEND, _TRECV = int(Op.SEND), int(Op.RECV), int(Op.TSEND), int(Op.TRECV)
_NAMES = {int(op): op.name.lower() for op in Op}
_RECEIVES = frozenset((_RECV, _TRECV))
_PEEK, _HAS_DATA = int(Flag.PEEK), int(Flag.REMOTE_CQ_DATA)


# sending


def tsend(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    tag: int = 0,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
    data: int | None = None,
) -> Request:
    """Send a tagged message.

    Parameters
    ----------
    buffer : Region, array, bytes-like, or list of them
        What to send. A region is the fastest spelling.
    peer : Peer or int
        To whom. Default: the one peer of a connected endpoint (type ``msg``); any other endpoint needs a peer.
    tag : int
        64 bits.
    remote_data : int, optional
        Remote CQ data: 64 bits that the receiver's completion carries.
    complete : str, optional
        When the request is finished: ``transmit``, ``delivery`` or ``match``. Default: when the buffer is
        reusable.
    flags : Flag or str, optional
        Such as ``fence``.
    incarnation : int, optional
        Only in that one of :meth:`Endpoint.incarnation`: when it is over, or was over before, the operation ends as
        :class:`PeerLost`. It never connects, and never goes to a later one.
    room_timeout : float, optional
        Seconds to wait for room in a full transmit queue; None: for ever. Without effect where an event loop runs
        in this thread, since there the call never waits.
    timeout : float, optional
        Deprecated: the former name of `room_timeout`.
    data : int, optional
        Deprecated: the former name of `remote_data`.

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
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    if data is not None:
        remote_data = remote_data_from(data)
    return _start(self, _TSEND, buffer, peer, tag, 0, remote_data, complete, flags, room_timeout, incarnation)


def send(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
    data: int | None = None,
) -> Request:
    """Send a message without a tag; otherwise as :meth:`tsend`."""
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    if data is not None:
        remote_data = remote_data_from(data)
    return _start(self, _SEND, buffer, peer, 0, 0, remote_data, complete, flags, room_timeout, incarnation)


begin_in_c = begin_methods_in_c(sender, {_TSEND: tsend, _SEND: send})


# receiving


def trecv_into(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    incarnation: int | None = None,
    room_timeout: float | None = None,
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
    incarnation : int, optional
        Only messages that arrived in that incarnation of `peer`, even in one that is over; as of :meth:`tsend`.
    room_timeout : float, optional
        Seconds to wait where the transport has no room for the receive; as of :meth:`tsend`.
    timeout : float, optional
        Deprecated: the former name of `room_timeout`.

    Returns
    -------
    Request
        Its ``wait()`` returns itself, with ``length``, ``source``, ``tag`` and ``remote_data``.

    Raises
    ------
    BufferTypeError, InvalidArgument, UnknownPeer, Closed
        When an argument is wrong; nothing was posted.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    request: Request | None = None
    if ignore == 0 and room_timeout is None and incarnation is None:
        request = self._poster.trecv(self, buffer, peer, tag)
    if request is None:
        request = _start(self, _TRECV, buffer, peer, tag, ignore, None, None, None, room_timeout, incarnation)
    # Python runs no signal handler from here to the caller's next instruction: had one raised before, the request
    # would have gone without this mark, and the receive with it.
    request._kept = True
    return request


def recv_into(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request:
    """Receive a message without a tag into memory; otherwise as :meth:`trecv_into`."""
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    request = _start(self, _RECV, buffer, peer, 0, 0, None, None, None, room_timeout, incarnation)
    request._kept = True  # as in trecv_into
    return request


def trecv(
    self: Initiator,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
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
    incarnation, room_timeout : int and float, optional
        As of :meth:`trecv_into`.
    timeout : float, optional
        Deprecated: the former name of `room_timeout`.

    Returns
    -------
    MessageRequest
        Its ``wait()`` returns a :class:`Message`. Cancelling or dropping it loses no message.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _receive_any_size(self, _TRECV, peer, tag, ignore, room_timeout, incarnation)


def recv(
    self: Initiator,
    peer: int | None = None,
    *,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> MessageRequest:
    """Receive a message without a tag, of any size; otherwise as :meth:`trecv`."""
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _receive_any_size(self, _RECV, peer, 0, 0, room_timeout, incarnation)


async def messages(
    self: Initiator, peer: int | None = None, *, tag: int = 0, ignore: int = 0, incarnation: int | None = None
) -> AsyncIterator[Message]:
    """Receive tagged messages for ever: ``async for message in ep.messages(tag=7)``.

    One wake-up of the event loop takes every message that is there. Leaving the loop loses none.

    Parameters
    ----------
    peer, tag, ignore, incarnation
        As of :meth:`trecv`.
    """
    import asyncio

    while True:
        # Messages that are there come without sleeping; other tasks have their turn now and then.
        for _ in range(_DRAINED_AT_ONCE):
            yield await trecv(self, peer, tag=tag, ignore=ignore, incarnation=incarnation)
        await asyncio.sleep(0)


def probe(
    self: Initiator,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    tagged: bool = True,
    discard: bool = False,
    incarnation: int | None = None,
) -> Request | None:
    """Look for a message that has arrived and that no receive has taken.

    Parameters
    ----------
    peer, tag, ignore, incarnation
        As of :meth:`trecv`.
    tagged : bool
        False: among messages without a tag.
    discard : bool
        Drop the message.

    Returns
    -------
    Request or None
        With ``length``, ``source``, ``tag`` and ``remote_data`` of the message. None: there is none.
    """
    flags = Flag.PEEK | Flag.DISCARD if discard else Flag.PEEK
    # What the transport has still to tell of counts as arrived, too.
    lib.ofp_domain_progress(self._domain._pointer("probe"))
    found = _start(
        self, _TRECV if tagged else _RECV, b"", peer, tag, ignore, None, None, flags, None, incarnation
    )
    try:
        found.wait()
    except NoMessage:
        return None
    return found


# prepared


def prepare_tsend(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    tag: int = 0,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    data: int | None = None,
) -> PreparedRequest:
    """Prepare a tagged send that is started many times; arguments as of :meth:`tsend`."""
    if data is not None:
        remote_data = remote_data_from(data)
    return _prepare(self, _TSEND, buffer, peer, tag, 0, remote_data, complete, flags, incarnation)


def prepare_send(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    data: int | None = None,
) -> PreparedRequest:
    """Prepare a send that is started many times; arguments as of :meth:`send`."""
    if data is not None:
        remote_data = remote_data_from(data)
    return _prepare(self, _SEND, buffer, peer, 0, 0, remote_data, complete, flags, incarnation)


def prepare_trecv(
    self: Initiator,
    buffer: Memory,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    incarnation: int | None = None,
) -> PreparedRequest:
    """Prepare a tagged receive that is started many times; arguments as of :meth:`trecv_into`."""
    return _prepare(self, _TRECV, buffer, peer, tag, ignore, None, None, None, incarnation)


def prepare_recv(
    self: Initiator, buffer: Memory, peer: int | None = None, *, incarnation: int | None = None
) -> PreparedRequest:
    """Prepare a receive that is started many times; arguments as of :meth:`recv_into`."""
    return _prepare(self, _RECV, buffer, peer, 0, 0, None, None, None, incarnation)


# general way


def _record(
    self: Initiator,
    op: int,
    buffer: Memory,
    peer: int | None,
    tag: int,
    ignore: int,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
    incarnation: int | None,
) -> tuple[Any, LocalMemory, int]:
    """Check the arguments and make a record; with what it points to, and the peer's number."""
    name = _NAMES[op]
    if self._handle is None:
        self._pointer(name)  # says why
    receives = op in _RECEIVES
    if not receives:
        peer = addressee(self, peer, name)
    elif peer is not None:
        peer = own_peer(self._peers.vector, peer, name)
    number = PEER_ANY if peer is None else peer
    bits = 0 if flags is None else parse_flags(Flag, flags).value
    if complete is not None:
        bits |= complete_flags(complete)
    if data is not None:
        bits |= _HAS_DATA
    # A look writes nothing, so its memory may be read-only.
    writable = receives and not bits & _PEEK
    memory = local_memory(buffer, domain=self._domain, writable=writable, operation=name)
    record = make_record(
        op, memory, peer=number, tag=tag, ignore=ignore, data=data or 0, flags=bits, incarnation=incarnation
    )
    return record, memory, number


def _start(
    self: Initiator,
    op: int,
    buffer: Memory,
    peer: int | None,
    tag: int,
    ignore: int,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
    timeout: float | None,
    incarnation: int | None,
) -> Request:
    record, memory, number = _record(self, op, buffer, peer, tag, ignore, data, complete, flags, incarnation)
    keep = (memory.segments, memory.keep)
    return start(self, Request, PLAIN, record, keep, _NAMES[op], number, timeout)  # type: ignore[no-any-return]


def _receive_any_size(
    self: Initiator,
    op: int,
    peer: int | None,
    tag: int,
    ignore: int,
    timeout: float | None,
    incarnation: int | None,
) -> MessageRequest:
    number = PEER_ANY if peer is None else own_peer(self._peers.vector, peer, _NAMES[op])
    record = make_record(op, None, peer=number, tag=tag, ignore=ignore, flags=_HOLD, incarnation=incarnation)
    return start(self, MessageRequest, MESSAGE, record, None, _NAMES[op], number, timeout)  # type: ignore[no-any-return]


def _prepare(
    self: Initiator,
    op: int,
    buffer: Memory,
    peer: int | None,
    tag: int,
    ignore: int,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
    incarnation: int | None = None,
) -> PreparedRequest:
    record, memory, number = _record(self, op, buffer, peer, tag, ignore, data, complete, flags, incarnation)
    name = _NAMES[op]
    # The record points to the segments for as long as it may be started.
    return prepare(self, record, (memory.segments, memory.keep), name, number)
