# SPDX-License-Identifier: BSD-3-Clause
"""Atomic operations on the memory of peers (fi_atomic(3)): requests, and the raw tier.

Each element is read and replaced in one step, as all other atomic operations of endpoints see it; the peer's own plain
loads and stores are not part of that. Over shared memory the peer takes no part where its memory is of
``domain.empty``; otherwise its process carries them out, so it has to make progress (``progress="auto"``, the default
of :func:`ofipy.open`). :meth:`Domain.atomic_valid` says which there are. The dtype of the value is that of the memory.

Memory that its owner has registered with ``access="device_atomic"`` is different: the owner's device carries them out,
its process need not run, and there are no more of them than the device has (``atomic_valid(…, device=True)``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ofipy._base.arrays import np
from ofipy._base.atomic_types import AtomicOp, Datatype, parse_datatype
from ofipy._base.binding import lib
from ofipy._base.errors import BufferTypeError, InvalidArgument
from ofipy._base.flags import Flag, Op, complete_flags, parse_enum, parse_flags
from ofipy._base.renamed import room_timeout_from
from ofipy._completion.request import FetchRequest, PreparedRequest, Request
from ofipy._memory.buffers import LocalMemory, local_memory, region_memory
from ofipy._memory.region import Region
from ofipy._memory.remote import (
    DEVICE,
    READS,
    WRITES,
    RemoteMemory,
    is_of_device,
)
from ofipy._operations.begun_in_c import begin_methods_in_c
from ofipy._operations.initiator import Initiator, post_record, prepare, start
from ofipy._operations.remote_record import Remote, remote_record
from ofipy._requests import PLAIN, updater

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "atomic",
    "begin_in_c",
    "compare_atomic",
    "fetch_atomic",
    "post_atomic",
    "post_compare_atomic",
    "post_fetch_atomic",
    "prepare_atomic",
    "prepare_compare_atomic",
    "prepare_fetch_atomic",
]

_ATOMIC, _FETCH, _COMPARE = int(Op.ATOMIC), int(Op.FETCH_ATOMIC), int(Op.COMPARE_ATOMIC)
_RIGHTS = {_ATOMIC: WRITES, _FETCH: READS | WRITES, _COMPARE: READS | WRITES}
_NAMES = {_ATOMIC: "atomic", _FETCH: "fetch_atomic", _COMPARE: "compare_atomic"}

Value: TypeAlias = "npt.NDArray[Any] | np.generic"
V = TypeVar("V", bound=Value)


def atomic(
    self: Initiator,
    value: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request:
    """Update values in the memory of a peer.

    Parameters
    ----------
    value : numpy array or scalar
        The operand, one element for each of the remote memory.
    peer : Peer or int
        Whose memory.
    remote : RemoteRegion, or list of them
        What to update; as many bytes as `value`, and each piece whole elements.
    op : AtomicOp or str
        Such as ``sum``, ``bor``, ``min``, ``write``.
    complete, flags, incarnation, room_timeout, timeout
        As of :meth:`Endpoint.write`.

    Returns
    -------
    Request
        Its ``wait()`` returns itself.

    Raises
    ------
    InvalidArgument, BufferTypeError, RemoteAccessError, UnknownPeer, Closed
        When an argument is wrong, or `remote` does not grant writing; nothing was started.
    NotSupported
        When there is no such operation on this dtype.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _start(  # type: ignore[no-any-return]
        self, _ATOMIC, value, None, peer, remote, op, None, complete, flags, room_timeout, incarnation
    )


def fetch_atomic(
    self: Initiator,
    value: V,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    into: npt.NDArray[Any] | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request[V]:
    """Update values in the memory of a peer, and get what was there before.

    Parameters
    ----------
    value, peer, remote, op, flags, incarnation, room_timeout, timeout
        As of :meth:`atomic`. For ``op="read"`` the value gives shape and dtype only.
    into : numpy array, optional
        Where to put the old values. Default: a new array.

    Returns
    -------
    Request
        Its ``wait()`` returns the old values: `into`, or an array, or a scalar where `value` is one.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _start(self, _FETCH, value, None, peer, remote, op, into, None, flags, room_timeout, incarnation)  # type: ignore[no-any-return]


def compare_atomic(
    self: Initiator,
    value: V,
    compare: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str = "cswap",
    into: npt.NDArray[Any] | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
    room_timeout: float | None = None,
    timeout: float | None = None,
) -> Request[V]:
    """Replace values in the memory of a peer where a comparison holds, and get what was there before.

    Parameters
    ----------
    value : numpy array or scalar
        What to put there.
    compare : numpy array or scalar
        What to compare with, like `value`; for ``op="mswap"`` the mask of the bits to replace.
    peer, remote, flags, incarnation, room_timeout, timeout
        As of :meth:`atomic`.
    op : AtomicOp or str
        ``cswap``, ``cswap_ne``, ``cswap_le``, ``cswap_lt``, ``cswap_ge``, ``cswap_gt`` or ``mswap``.
    into : numpy array, optional
        Where to put the old values. Default: a new array.

    Returns
    -------
    Request
        Its ``wait()`` returns the old values, whether they were replaced or not.
    """
    if timeout is not None:
        room_timeout = room_timeout_from(timeout)
    return _start(  # type: ignore[no-any-return]
        self, _COMPARE, value, compare, peer, remote, op, into, None, flags, room_timeout, incarnation
    )


begin_in_c = begin_methods_in_c(updater, {_ATOMIC: atomic, _FETCH: fetch_atomic, _COMPARE: compare_atomic})


# prepared


def prepare_atomic(
    self: Initiator,
    value: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    complete: str | None = None,
    flags: Flag | str | None = None,
    incarnation: int | None = None,
) -> PreparedRequest:
    """Prepare an atomic operation that is started many times; arguments as of :meth:`atomic`.

    What a contiguous array holds when it is started is the operand; anything else is copied now.
    """
    return _prepare(
        self, _Attributes(_ATOMIC, op, peer, remote, complete, flags, incarnation), value, None, None
    )


def prepare_fetch_atomic(
    self: Initiator,
    value: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    into: npt.NDArray[Any],
    flags: Flag | str | None = None,
    incarnation: int | None = None,
) -> PreparedRequest:
    """Prepare a fetching one, as :meth:`prepare_atomic`; each run leaves the old values in `into`."""
    return _prepare(self, _Attributes(_FETCH, op, peer, remote, None, flags, incarnation), value, None, into)


def prepare_compare_atomic(
    self: Initiator,
    value: Value,
    compare: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str = "cswap",
    into: npt.NDArray[Any],
    flags: Flag | str | None = None,
    incarnation: int | None = None,
) -> PreparedRequest:
    """Prepare a comparing one, as :meth:`prepare_fetch_atomic`."""
    return _prepare(
        self, _Attributes(_COMPARE, op, peer, remote, None, flags, incarnation), value, compare, into
    )


# raw


def post_atomic(
    self: Initiator,
    region: Region,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    dtype: Datatype | npt.DTypeLike,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    complete: str | None = None,
    flags: Flag | str | None = None,
) -> None:
    """Post an atomic operation whose operand is a part of a region.

    Parameters
    ----------
    region, offset, length, context
        As of :meth:`post_tsend`.
    dtype : Datatype or dtype
        Type of an element.
    peer, remote, op, complete, flags
        As of :meth:`atomic`.
    """
    attributes = _Attributes(_ATOMIC, op, peer, remote, complete, flags)
    _post(self, attributes, region, offset, length, dtype, context)


def post_fetch_atomic(
    self: Initiator,
    region: Region,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    dtype: Datatype | npt.DTypeLike,
    result: Region,
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    complete: str | None = None,
    flags: Flag | str | None = None,
) -> None:
    """Post a fetching one; the old values go to the start of the region `result`; see :meth:`post_atomic`."""
    attributes = _Attributes(_FETCH, op, peer, remote, complete, flags)
    _post(self, attributes, region, offset, length, dtype, context, result=result)


def post_compare_atomic(
    self: Initiator,
    region: Region,
    peer: int,
    remote: Remote,
    *,
    dtype: Datatype | npt.DTypeLike,
    compare: Region,
    result: Region,
    op: AtomicOp | str = "cswap",
    offset: int = 0,
    length: int | None = None,
    context: int = 0,
    complete: str | None = None,
    flags: Flag | str | None = None,
) -> None:
    """Post a comparing one, with the start of the region `compare`; see :meth:`post_fetch_atomic`."""
    attributes = _Attributes(_COMPARE, op, peer, remote, complete, flags)
    _post(self, attributes, region, offset, length, dtype, context, compare=compare, result=result)


# how


class _Attributes:
    """What an atomic operation is, apart from local memory: the same of requests, prepared and raw ones."""

    __slots__ = ("code", "complete", "flags", "incarnation", "op", "peer", "remote")

    def __init__(
        self,
        code: int,
        op: AtomicOp | str,
        peer: int,
        remote: Remote,
        complete: str | None,
        flags: Flag | str | None,
        incarnation: int | None = None,
    ) -> None:
        self.code = code
        self.op = op
        self.peer = peer
        self.remote = remote
        self.complete = complete
        self.flags = flags
        self.incarnation = incarnation

    @property
    def name(self) -> str:
        """Of the operation, for errors."""
        return _NAMES[self.code]

    def record(
        self,
        initiator: Initiator,
        memory: LocalMemory,
        datatype: int,
        compare: LocalMemory | None,
        result: LocalMemory | None,
        context: int = 0,
    ) -> tuple[Any, RemoteMemory]:
        """Make the record of the operation on this memory; with the remote segments that it points to."""
        what = parse_enum(AtomicOp, self.op)
        chosen = parse_flags(Flag, self.flags).value | complete_flags(self.complete)
        rights = READS if what is AtomicOp.READ and self.code != _ATOMIC else _RIGHTS[self.code]
        # The handle says who carries it out: two kinds on one element would not be one step against each other.
        if chosen & lib.OFP_DEVICE_ATOMIC or is_of_device(self.remote):
            chosen |= lib.OFP_DEVICE_ATOMIC
            rights = DEVICE
        return remote_record(
            initiator,
            self.code,
            self.name,
            memory,
            self.peer,
            self.remote,
            rights=rights,
            flags=chosen,
            context=context,
            atomic_op=what,
            datatype=datatype,
            compare=compare,
            result=result,
            incarnation=self.incarnation,
        )

    def record_of_arrays(
        self,
        initiator: Initiator,
        operand: npt.NDArray[Any],
        compare: Value | None,
        into: npt.NDArray[Any] | None,
    ) -> tuple[Any, Any]:
        """Make the record of the operation on arrays, and what has to stay alive with it."""
        datatype = Datatype.from_dtype(operand.dtype)
        memory, with_, back = _one_piece(initiator, operand, False, self.name), None, None
        if self.code != _ATOMIC:
            _check_like(into, operand, "into", self.name)
            back = _one_piece(initiator, into, True, self.name)
        if self.code == _COMPARE:
            other = _operand(compare, "compare", self.name)
            _check_like(other, operand, "compare", self.name)
            with_ = _one_piece(initiator, other, False, self.name)
        record, far = self.record(initiator, memory, datatype, with_, back)
        return record, (memory.keep, with_ and with_.keep, back and back.keep, far)


def _start(
    self: Initiator,
    code: int,
    value: Any,
    compare: Any,
    peer: int,
    remote: Any,
    op: AtomicOp | str,
    into: Any,
    complete: str | None,
    flags: Flag | str | None,
    room_timeout: float | None,
    incarnation: int | None,
) -> Any:
    attributes = _Attributes(code, op, peer, remote, complete, flags, incarnation)
    self._pointer(attributes.name)
    operand = _operand(value, "value", attributes.name)
    if code != _ATOMIC and into is None:
        into = np.empty(operand.shape, operand.dtype)
    record, keep = attributes.record_of_arrays(self, operand, compare, into)
    kind = Request if into is None else FetchRequest
    request = start(self, kind, PLAIN, record, keep, attributes.name, peer, room_timeout)
    if into is not None:
        request._fetched = into
    return request


def _prepare(
    self: Initiator,
    attributes: _Attributes,
    value: Value,
    compare: Value | None,
    into: npt.NDArray[Any] | None,
) -> PreparedRequest:
    self._pointer(attributes.name)
    operand = _operand(value, "value", attributes.name)
    record, keep = attributes.record_of_arrays(self, operand, compare, into)
    return prepare(self, record, keep, attributes.name, attributes.peer)


def _post(
    self: Initiator,
    attributes: _Attributes,
    region: Region,
    offset: int,
    length: int | None,
    dtype: Datatype | npt.DTypeLike,
    context: int,
    *,
    compare: Region | None = None,
    result: Region | None = None,
) -> None:
    name, domain = attributes.name, self._domain
    memory = region_memory(region, offset, length, domain=domain, operation=name)
    with_, back = (
        None if each is None else region_memory(each, 0, memory.length, domain=domain, operation=name)
        for each in (compare, result)
    )
    # The segments are the record's until the post returns.
    record, _far = attributes.record(self, memory, parse_datatype(dtype), with_, back, context)
    post_record(self, record, name, attributes.peer)


def _one_piece(self: Initiator, array: Any, writable: bool, operation: str) -> LocalMemory:
    memory = local_memory(array, domain=self._domain, writable=writable, operation=operation)
    if memory.count:
        raise BufferTypeError(
            "the array for what was there before is not contiguous",
            operation=operation,
            remedy="use a new array: numpy.empty_like(value)",
        )
    return memory


def _operand(value: Any, what: str, operation: str) -> npt.NDArray[Any]:
    """An operand as a contiguous array; its dtype is what the remote memory holds, so there has to be one."""
    if not isinstance(value, np.ndarray | np.generic):
        raise InvalidArgument(
            f"{what}={value!r}; a numpy array or scalar is meant",
            operation=operation,
            remedy="its dtype says what the remote memory holds: numpy.uint64(1), for example",
        )
    return np.asarray(value, order="C")


def _check_like(array: Any, operand: npt.NDArray[Any], what: str, operation: str) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != operand.dtype or array.size != operand.size:
        raise InvalidArgument(
            f"{what} is not {operand.size} elements of {operand.dtype}, as the value is", operation=operation
        )
