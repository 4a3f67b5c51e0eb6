# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing the memory of peers (fi_rma(3)): requests, prepared operations, and the raw tier.

The methods ``read`` and ``write`` of an endpoint begin in C (``begin_in_c``), which knows the arguments that most
programs use, and goes on to the functions here, which know every argument and say what is wrong.

The peer takes no part, but its process has to make progress unless the transport reaches its memory by itself:
``progress="auto"``, as :func:`ofipy.open` chooses it, always does. What the peer refuses (a closed region, wrong key,
bounds or rights) ends as :class:`~ofipy.RemoteAccessError` from ``wait()``, with nothing touched there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ofipy._base.flags import Flag, Op, complete_flags, parse_flags
from ofipy._base.renamed import remote_data_from, room_timeout_from
from ofipy._completion.request import PreparedRequest, Request
from ofipy._memory.buffers import LocalMemory, local_memory, region_memory
from ofipy._memory.region import Region
from ofipy._memory.remote import READS, WRITES, RemoteMemory
from ofipy._operations.begun_in_c import begin_methods_in_c
from ofipy._operations.initiator import Initiator, post_record, prepare, start
from ofipy._operations.remote_record import Remote, remote_record
from ofipy._requests import PLAIN, accessor

if TYPE_CHECKING:
    from ofipy._memory.accepted import Memory

__all__ = [
    "begin_in_c",
    "post_read",
    "post_write",
    "prepare_read",
    "prepare_write",
    "read",
    "write",
]

_READ, _WRITE = int(Op.READ), int(Op.WRITE)
_NAMES = {_READ: "read", _WRITE: "write"}
_RIGHTS = {_READ: READS, _WRITE: WRITES}
_HAS_DATA = int(Flag.REMOTE_CQ_DATA)


def read(
    self: Initiator,
    into: Memory,
    peer: int,
    remote: Remote,
    *,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request:
    """Read the memory of a peer.

    Parameters
    ----------
    into : Region, writable array or bytes-like, or list of them
        Where to; not to be touched until the request has finished.
    peer : Peer or int
        Whose memory.
    remote : RemoteRegion, or list of them
        What; as many bytes as `into`. A list has at most ``info.remote_segment_limit`` entries.
    complete : str, optional
        Completion level; what was read is always there when the request has finished.
    flags : Flag or str, optional
        Such as ``fence``.
    incarnation : int, optional
        As of :meth:`tsend`.
    room_timeout : float, optional
        Seconds to wait for room in a full transmit queue; as of :meth:`tsend`.
    timeout : float, optional
        Deprecated: the former name of `room_timeout`.

    Returns
    -------
    Request
        Its ``wait()`` returns itself.

    Raises
    ------
    InvalidArgument, BufferTypeError, RemoteAccessError, UnknownPeer, Closed
        When an argument is wrong, or `remote` does not grant reading; nothing was started.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _start(self, _READ, into, peer, remote, None, complete, flags, room_timeout, incarnation)


def write(
    self: Initiator,
    buffer: Memory,
    peer: int,
    remote: Remote,
    *,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
    data: int | None = None,
) -> Request:
    """Write to the memory of a peer.

    Parameters
    ----------
    buffer : Region, array, bytes-like, or list of them
        What to write.
    peer : Peer or int
        Whose memory.
    remote : RemoteRegion, or list of them
        Where to; as many bytes as `buffer`.
    remote_data : int, optional
        Remote CQ data: 64 bits that the peer finds in its queue, in an entry of its own, once the bytes are there.
    complete : str, optional
        When the request is finished: ``transmit`` or ``delivery`` (the bytes are in the peer's memory). Default:
        when the buffer is reusable.
    flags : Flag or str, optional
        Such as ``fence`` or ``inject``.
    incarnation : int, optional
        As of :meth:`tsend`.
    room_timeout : float, optional
        Seconds to wait for room in a full transmit queue; as of :meth:`tsend`.
    timeout : float, optional
        Deprecated: the former name of `room_timeout`.
    data : int, optional
        Deprecated: the former name of `remote_data`.

    Returns
    -------
    Request
        Maybe finished already. Its ``wait()`` returns itself.

    Raises
    ------
    InvalidArgument, BufferTypeError, RemoteAccessError, UnknownPeer, Closed
        When an argument is wrong, or `remote` does not grant writing; nothing was started.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    if data is not None:
        remote_data = remote_data_from(data)
    return _start(self, _WRITE, buffer, peer, remote, remote_data, complete, flags, room_timeout, incarnation)


begin_in_c = begin_methods_in_c(accessor, {_READ: read, _WRITE: write})


# prepared


def prepare_read(
    self: Initiator,
    into: Memory,
    peer: int,
    remote: Remote,
    *,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
) -> PreparedRequest:
    """Prepare a read that is started many times; arguments as of :meth:`read`."""
    return _prepare(self, _READ, into, peer, remote, None, complete, flags, incarnation)


def prepare_write(
    self: Initiator,
    buffer: Memory,
    peer: int,
    remote: Remote,
    *,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    data: int | None = None,
) -> PreparedRequest:
    """Prepare a write that is started many times; arguments as of :meth:`write`."""
    if data is not None:
        remote_data = remote_data_from(data)
    return _prepare(self, _WRITE, buffer, peer, remote, remote_data, complete, flags, incarnation)


# raw


def post_read(
    self: Initiator,
    region: Region,
    peer: int,
    remote: Remote,
    *,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    complete: str | None = None,
    flags: Flag | str | None = None,
) -> None:
    """Post a read into a part of a region; `remote` as of :meth:`read`, the rest as of :meth:`post_tsend`."""
    memory = region_memory(region, offset, length, domain=self._domain, operation="read")
    _post(self, _READ, memory, peer, remote, context, None, complete, flags)


def post_write(
    self: Initiator,
    region: Region,
    peer: int,
    remote: Remote,
    *,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    data: int | None = None,
) -> None:
    """Post a write of a part of a region; `remote` as of :meth:`write`, the rest as of :meth:`post_tsend`."""
    if data is not None:
        remote_data = remote_data_from(data)
    memory = region_memory(region, offset, length, domain=self._domain, operation="write")
    _post(self, _WRITE, memory, peer, remote, context, remote_data, complete, flags)


# how


def _record(
    self: Initiator,
    op: int,
    memory: LocalMemory,
    peer: int,
    remote: Remote,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
    context: int = 0,
    incarnation: int | None = None,
) -> tuple[Any, RemoteMemory]:
    """Make a record; with the remote segments that it points to."""
    bits = parse_flags(Flag, flags).value | complete_flags(complete)
    if data is not None:
        bits |= _HAS_DATA
    return remote_record(
        self,
        op,
        _NAMES[op],
        memory,
        peer,
        remote,
        rights=_RIGHTS[op],
        data=data or 0,
        flags=bits,
        context=context,
        incarnation=incarnation,
    )


def _start(
    self: Initiator,
    op: int,
    buffer: Memory,
    peer: int,
    remote: Remote,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
    timeout: float | None,
    incarnation: int | None,
) -> Request:
    name = _NAMES[op]
    self._pointer(name)
    memory = local_memory(buffer, domain=self._domain, writable=op == _READ, operation=name)
    record, far = _record(self, op, memory, peer, remote, data, complete, flags, incarnation=incarnation)
    keep = (memory.segments, memory.keep, far)
    return start(self, Request, PLAIN, record, keep, name, peer, timeout)  # type: ignore[no-any-return]


def _prepare(
    self: Initiator,
    op: int,
    buffer: Memory,
    peer: int,
    remote: Remote,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
    incarnation: int | None,
) -> PreparedRequest:
    name = _NAMES[op]
    self._pointer(name)
    memory = local_memory(buffer, domain=self._domain, writable=op == _READ, operation=name)
    record, far = _record(self, op, memory, peer, remote, data, complete, flags, incarnation=incarnation)
    # The record points to the segments for as long as it may be started.
    return prepare(self, record, (memory.segments, memory.keep, far), name, peer)


def _post(
    self: Initiator,
    op: int,
    memory: LocalMemory,
    peer: int,
    remote: Remote,
    context: int,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
) -> None:
    # The segments are the record's until the post returns.
    record, _far = _record(self, op, memory, peer, remote, data, complete, flags, context)
    post_record(self, record, _NAMES[op], peer)
