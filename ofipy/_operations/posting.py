# SPDX-License-Identifier: BSD-3-Clause
"""The raw tier: records, contexts, completions in a queue, and no object for any operation.

The memory of a posted operation is the program's to keep until its completion. A full transmit queue is
:class:`~ofipy.Again`.
"""

import errno as codes
from typing import TYPE_CHECKING, Any

from ofipy._base.binding import failure, ffi, lib
from ofipy._base.errors import InvalidArgument
from ofipy._base.flags import Flag, Op, complete_flags, parse_flags
from ofipy._base.limits import UINT64_MAX, whole_number
from ofipy._base.owner import check_owner
from ofipy._base.renamed import remote_data_from
from ofipy._completion.counter import counter_reaching
from ofipy._discovery.av import PEER_ANY, own_peer
from ofipy._memory import records
from ofipy._memory.buffers import make_record, region_memory
from ofipy._memory.region import Region
from ofipy._operations.initiator import Initiator, addressee
from ofipy._operations.refused import refusal

if TYPE_CHECKING:
    import numpy as np

    from ofipy._completion.counter import Counter

__all__ = ["cancel", "post", "post_recv", "post_send", "post_trecv", "post_tsend"]

_RECORDS = ffi.typeof("struct ofp_operation[]")
_SENDS = (Op.SEND, Op.TSEND)
_post = lib.ofp_post
_from_buffer = ffi.from_buffer


def post(
    self: Initiator,
    operations: "np.ndarray[Any, np.dtype[np.void]]",
    *,
    after: "tuple[Counter, int] | None" = None,
) -> int:
    """Post records.

    Parameters
    ----------
    operations : ndarray of OPERATION_DTYPE, shape (n,)
        Contiguous; reusable when the call returns.
    after : (Counter, int), optional
        Keep copies of the records, and post them when the counter has reached this value: in the order of values,
        then of calls (fi_trigger(3)). What is refused then, or cancelled before, has a completion that says so. The
        memory that the records name stays the program's to keep.

    Returns
    -------
    int
        How many were accepted, always a prefix; fewer than n when the transmit queue is full, or when the
        next one is refused (posting it again raises the reason).

    Raises
    ------
    Again
        When none was accepted: read completions, then post again.
    InvalidArgument, NotSupported, UnknownPeer and other FabricError
        When the first record is refused.
    """
    if after is not None:
        return _post_after(self, operations, *counter_reaching(after, "post"))
    # Identity is the usual case, and cheaper to see than equality.
    if operations.dtype is not records.OPERATION_DTYPE and operations.dtype != records.OPERATION_DTYPE:
        raise InvalidArgument(
            f"records of dtype {operations.dtype}; OPERATION_DTYPE is meant", operation="post"
        )
    try:
        accepted: int = _post(self._handle, _from_buffer(_RECORDS, operations), operations.size)
    except (TypeError, ValueError, BufferError):
        # A closed endpoint has no handle, which ends here too: then this says so.
        self._pointer("post")
        raise InvalidArgument(
            "the records are not contiguous", operation="post", remedy="numpy.ascontiguousarray makes them so"
        ) from None
    if accepted < 0:
        first = _from_buffer(_RECORDS, operations)
        raise refusal(accepted, first, domain=self._domain, operation="post")
    return accepted


def _post_after(
    self: Initiator, operations: "np.ndarray[Any, np.dtype[np.void]]", counter: "Counter", threshold: int
) -> int:
    if operations.dtype != records.OPERATION_DTYPE or not operations.flags.c_contiguous:
        raise InvalidArgument("contiguous records of OPERATION_DTYPE are meant", operation="post")
    check_owner(self._domain, counter, "after", "post")
    accepted: int = lib.ofp_post_after(
        self._pointer("post"),
        _from_buffer(_RECORDS, operations),
        operations.size,
        counter._pointer("post"),
        threshold,
    )
    if accepted < 0:
        raise failure(accepted, operation="post", provider=self._domain.provider)
    return accepted


def post_tsend(
    self: Initiator,
    region: Region,
    peer: int | None = None,
    *,
    tag: int = 0,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    data: int | None = None,
) -> None:
    """Post a tagged send of a part of a region.

    Parameters
    ----------
    region : Region
        Where from.
    peer : Peer or int
        To whom. Default: the one peer of a connected endpoint (type ``msg``); any other endpoint needs a peer.
    tag : int
        64 bits.
    offset, length : int
        Bytes, within the region. Default: all of it.
    context : int
        64 bits that the completion carries.
    remote_data, complete, flags, data
        As of :meth:`Endpoint.tsend`.

    Raises
    ------
    Again
        When the transmit queue is full.
    """
    if data is not None:
        remote_data = remote_data_from(data)
    _post_one(self, Op.TSEND, region, peer, tag, 0, offset, length, context, remote_data, complete, flags)


def post_send(
    self: Initiator,
    region: Region,
    peer: int | None = None,
    *,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    remote_data: int | None = None,
    complete: str | None = None,
    flags: Flag | str | None = None,
    data: int | None = None,
) -> None:
    """Post a send without a tag; otherwise as :meth:`post_tsend`."""
    if data is not None:
        remote_data = remote_data_from(data)
    _post_one(self, Op.SEND, region, peer, 0, 0, offset, length, context, remote_data, complete, flags)


def post_trecv(
    self: Initiator,
    region: Region,
    peer: int | None = None,
    *,
    tag: int = 0,
    ignore: int = 0,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    flags: Flag | str | None = None,
) -> None:
    """Post a tagged receive into a part of a region, by default from anyone; see :meth:`post_tsend`."""
    _post_one(self, Op.TRECV, region, peer, tag, ignore, offset, length, context, None, None, flags)


def post_recv(
    self: Initiator,
    region: Region,
    peer: int | None = None,
    *,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    flags: Flag | str | None = None,
) -> None:
    """Post a receive of a message without a tag; otherwise as :meth:`post_trecv`."""
    _post_one(self, Op.RECV, region, peer, 0, 0, offset, length, context, None, None, flags)


def cancel(self: Initiator, context: int) -> bool:
    """Cancel the newest posted operation with this context.

    Returns
    -------
    bool
        True: its completion says ECANCELED. False: there is none, or it is too late.
    """
    number = whole_number("context", context, 0, UINT64_MAX, operation="cancel")
    result = lib.ofp_cancel(self._pointer("cancel"), number)
    if result == -codes.ENOENT:
        return False
    if result < 0:
        raise failure(result, operation="cancel", provider=self._domain.provider)
    return True


def _post_one(
    self: Initiator,
    op: Op,
    region: Region,
    peer: int | None,
    tag: int,
    ignore: int,
    offset: int,
    length: int | None,
    context: int,
    data: int | None,
    complete: str | None,
    flags: Flag | str | None,
) -> None:
    name = op.name.lower()
    pointer = self._pointer(name)
    bits = int(parse_flags(Flag, flags)) | complete_flags(complete)
    if data is not None:
        bits |= Flag.REMOTE_CQ_DATA
    memory = region_memory(region, offset, length, domain=self._domain, operation=name)
    if op in _SENDS:
        number = addressee(self, peer, name)
    else:
        number = PEER_ANY if peer is None else own_peer(self._peers.vector, peer, name)
    record = make_record(
        op, memory, peer=number, tag=tag, ignore=ignore, data=data or 0, flags=bits, context=context
    )
    result = _post(pointer, record, 1)
    if result < 0:
        raise refusal(result, record, domain=self._domain, operation=name, peer=self._peer_text(number))
