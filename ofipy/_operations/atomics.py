# SPDX-License-Identifier: BSD-3-Clause
"""Atomic operations on the memory of peers (fi_atomic(3)): requests, and the raw tier.

Each element is read and replaced in one step, as all other atomic operations of endpoints see it; the peer's own loads
and stores are not part of that. The peer's process carries them out, so it has to make progress (``progress="auto"``,
as :func:`ofipy.open` chooses it, always does). :meth:`Domain.atomic_valid` says which there are. The dtype of the value
says what the remote memory holds.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ofipy._base.atomic_types import AtomicOp, Datatype, parse_datatype
from ofipy._base.errors import BufferTypeError, InvalidArgument
from ofipy._base.flags import Flag, Op, complete_flags, parse_enum, parse_flags
from ofipy._completion.request import COMPLETED, Request
from ofipy._discovery.av import own_peer
from ofipy._memory.buffers import LocalMemory, local_memory, make_record, region_memory
from ofipy._memory.region import Region
from ofipy._memory.remote import READS, WRITES, RemoteMemory, remote_memory
from ofipy._operations.initiator import Initiator, post_record, start
from ofipy._operations.rma import Remote, check_lengths
from ofipy._requests import PLAIN

if TYPE_CHECKING:
    pass


__all__ = [
    "FetchRequest",
    "atomic",
    "compare_atomic",
    "fetch_atomic",
    "post_atomic",
    "post_compare_atomic",
    "post_fetch_atomic",
]

_ATOMIC, _FETCH, _COMPARE = int(Op.ATOMIC), int(Op.FETCH_ATOMIC), int(Op.COMPARE_ATOMIC)
_NAMES = {_ATOMIC: "atomic", _FETCH: "fetch_atomic", _COMPARE: "compare_atomic"}

Value = npt.NDArray[Any] | np.generic


class FetchRequest(Request):
    """A fetching atomic operation; its ``wait()`` returns what the target held before.

    A numpy scalar where one was passed, otherwise an array.
    """

    __slots__ = ("_fetched",)

    _fetched: npt.NDArray[Any]

    def _result(self) -> Any:
        super()._result()
        return self._fetched if self._fetched.ndim else self._fetched[()]


def atomic(
    self: Initiator,
    value: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    complete: str | None = None,
    flags: Flag | str | None = None,
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
    complete, flags, timeout
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
    return _start(self, _ATOMIC, value, None, peer, remote, op, None, complete, flags, timeout)


def fetch_atomic(
    self: Initiator,
    value: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str,
    into: npt.NDArray[Any] | None = None,
    flags: Flag | str | None = None,
    timeout: float | None = None,
) -> Request:
    """Update values in the memory of a peer, and get what was there before.

    Parameters
    ----------
    value, peer, remote, op, flags, timeout
        As of :meth:`atomic`. For ``op="read"`` the value gives shape and dtype only.
    into : numpy array, optional
        Where to put the old values. Default: a new array.

    Returns
    -------
    Request
        Its ``wait()`` returns the old values: `into`, or an array, or a scalar where `value` is one.
    """
    return _start(self, _FETCH, value, None, peer, remote, op, into, None, flags, timeout)


def compare_atomic(
    self: Initiator,
    value: Value,
    compare: Value,
    peer: int,
    remote: Remote,
    *,
    op: AtomicOp | str = "cswap",
    into: npt.NDArray[Any] | None = None,
    flags: Flag | str | None = None,
    timeout: float | None = None,
) -> Request:
    """Replace values in the memory of a peer where a comparison holds, and get what was there before.

    Parameters
    ----------
    value : numpy array or scalar
        What to put there.
    compare : numpy array or scalar
        What to compare with, like `value`; for ``op="mswap"`` the mask of the bits to replace.
    peer, remote, flags, timeout
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
    return _start(self, _COMPARE, value, compare, peer, remote, op, into, None, flags, timeout)


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
    memory = region_memory(region, offset, length, domain=self._domain, operation="atomic")
    _post(self, _ATOMIC, memory, peer, remote, op, dtype, None, None, context, complete, flags)


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
    memory = region_memory(region, offset, length, domain=self._domain, operation="fetch_atomic")
    back = region_memory(result, 0, memory.length, domain=self._domain, operation="fetch_atomic")
    _post(self, _FETCH, memory, peer, remote, op, dtype, None, back, context, complete, flags)


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
    memory = region_memory(region, offset, length, domain=self._domain, operation="compare_atomic")
    with_ = region_memory(compare, 0, memory.length, domain=self._domain, operation="compare_atomic")
    back = region_memory(result, 0, memory.length, domain=self._domain, operation="compare_atomic")
    _post(self, _COMPARE, memory, peer, remote, op, dtype, with_, back, context, complete, flags)


# how


def _record(
    self: Initiator,
    code: int,
    memory: LocalMemory,
    peer: int,
    remote: Remote,
    op: AtomicOp | str,
    datatype: int,
    compare: LocalMemory | None,
    result: LocalMemory | None,
    complete: str | None,
    flags: Flag | str | None,
    context: int = 0,
) -> tuple[Any, RemoteMemory]:
    name = _NAMES[code]
    what = parse_enum(AtomicOp, op)
    rights = WRITES if code == _ATOMIC else READS if what is AtomicOp.READ else READS | WRITES
    far = remote_memory(
        remote,
        rights=rights,
        limit=self._domain.info.remote_segment_limit,
        operation=name,
        provider=self._domain.provider,
    )
    check_lengths(name, memory.length, far.length)
    record = make_record(
        code,
        memory,
        peer=own_peer(self._peers.vector, peer, name),
        flags=parse_flags(Flag, flags).value | complete_flags(complete),
        context=context,
        remote=far,
        atomic_op=what,
        datatype=datatype,
        compare=compare,
        result=result,
    )
    return record, far


def _start(
    self: Initiator,
    code: int,
    value: Value,
    compare: Value | None,
    peer: int,
    remote: Remote,
    op: AtomicOp | str,
    into: npt.NDArray[Any] | None,
    complete: str | None,
    flags: Flag | str | None,
    timeout: float | None,
) -> Request:
    name = _NAMES[code]
    self._pointer(name)
    operand = _operand(value, "value", name)
    datatype = Datatype.from_dtype(operand.dtype)
    fetched = None
    memory, with_, back = _one_piece(self, operand, False, name), None, None
    if code != _ATOMIC:
        fetched = np.empty(operand.shape, operand.dtype) if into is None else into
        _check_like(fetched, operand, "into", name)
        back = _one_piece(self, fetched, True, name)
    if code == _COMPARE:
        other = _operand(compare, "compare", name)
        _check_like(other, operand, "compare", name)
        with_ = _one_piece(self, other, False, name)
    record, far = _record(self, code, memory, peer, remote, op, datatype, with_, back, complete, flags)
    keep = (memory.keep, with_ and with_.keep, back and back.keep, far)
    if fetched is None:
        return start(self, Request, PLAIN, record, keep, name, peer, timeout)  # type: ignore[no-any-return]
    request = start(self, FetchRequest, PLAIN, record, keep, name, peer, timeout)
    if request is COMPLETED:
        request = FetchRequest()
        request._over = True
    request._fetched = fetched
    return request  # type: ignore[no-any-return]


def _one_piece(self: Initiator, array: npt.NDArray[Any], writable: bool, operation: str) -> LocalMemory:
    memory = local_memory(array, domain=self._domain, writable=writable, operation=operation)
    if memory.count:
        raise BufferTypeError(f"{operation} into an array that is not contiguous", operation=operation)
    return memory


def _post(
    self: Initiator,
    code: int,
    memory: LocalMemory,
    peer: int,
    remote: Remote,
    op: AtomicOp | str,
    dtype: Datatype | npt.DTypeLike,
    compare: LocalMemory | None,
    result: LocalMemory | None,
    context: int,
    complete: str | None,
    flags: Flag | str | None,
) -> None:
    datatype = parse_datatype(dtype)
    # The segments are the record's until the post returns.
    record, _far = _record(
        self, code, memory, peer, remote, op, datatype, compare, result, complete, flags, context
    )
    post_record(self, record, _NAMES[code], peer)


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
