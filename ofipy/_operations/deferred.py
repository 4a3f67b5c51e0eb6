# SPDX-License-Identifier: BSD-3-Clause
"""Work that waits for counters: operations, and reductions of local memory (fi_trigger(3)); methods of a domain."""

from __future__ import annotations

import errno as codes
from typing import TYPE_CHECKING, Any

from ofipy._base.atomic_types import AtomicOp, Datatype, parse_datatype
from ofipy._base.binding import check, lib
from ofipy._base.errors import InvalidArgument
from ofipy._base.flags import parse_enum
from ofipy._completion.counter import Counter, DeferredWork, new_work, queue_work
from ofipy._completion.counter import defer as defer_work
from ofipy._discovery.domain import Domain
from ofipy._memory import records
from ofipy._memory.allocation import MemoryDomain
from ofipy._memory.buffers import region_memory
from ofipy._memory.region import Region

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["defer", "defer_reduce", "flush_work"]


def defer(
    self: Domain,
    operation: np.ndarray[Any, np.dtype[np.void]],
    *,
    after: tuple[Counter, int],
    completes: Counter | None = None,
) -> DeferredWork:
    """Post a record when a counter reaches a value (fi_trigger(3), deferred work).

    Parameters
    ----------
    operation : ndarray of OPERATION_DTYPE, one record
        Its ``endpoint`` is the id of an endpoint of this domain. It is copied; the memory that it names stays the
        program's to keep.
    after : (Counter, int)
        The counter, and the value that starts it.
    completes : Counter, optional
        Gets 1 added when the operation has finished, or 1 error when it failed.

    Raises
    ------
    InvalidArgument, NotSupported and other FabricError
        When the record is refused.
    """
    if operation.dtype != records.OPERATION_DTYPE or operation.size != 1:
        raise InvalidArgument("one record of OPERATION_DTYPE is meant", operation="defer")
    return defer_work(self, lib.OFP_WORK_OPERATION, after, completes, 0, operation.tobytes())


def defer_reduce(
    self: MemoryDomain,
    target: Region,
    source: Region,
    *,
    op: AtomicOp | str,
    dtype: Datatype | npt.DTypeLike,
    after: tuple[Counter, int],
    completes: Counter | None = None,
) -> DeferredWork:
    """Combine local memory when a counter reaches a value: ``target[i] = target[i] op source[i]``.

    Each element is replaced in one step, as by an atomic operation of a peer. With records that wait for counters
    too a chain of steps runs without the program, such as receives that are added up.

    Parameters
    ----------
    target, source : Region
        As many bytes each, whole elements: parts ``region[begin:end]`` of what this domain has registered. They are
        the same memory, or have none in common. A region that is closed before the start is an error then.
    op : AtomicOp or str
        Such as ``sum``, ``bor``, ``min``, ``write``: one of kind ``base`` (:meth:`atomic_valid`).
    dtype : Datatype or dtype
        Type of an element.
    after : (Counter, int)
        The counter, and the value that starts it.
    completes : Counter, optional
        Gets 1 added when it is done, or 1 error when it was cancelled or failed. There is no other word of its end.

    Raises
    ------
    InvalidArgument
        When lengths do not fit, the memory overlaps, or something belongs to another domain.
    NotSupported
        When there is no such operation on this dtype.
    Closed
        When a region is closed.

    Notes
    -----
    It is done in one go while the domain is locked, by whoever makes progress: cut what takes long.
    """
    what, kind = parse_enum(AtomicOp, op), parse_datatype(dtype)
    into = region_memory(target, 0, None, domain=self, operation="defer_reduce")
    operand = region_memory(source, 0, None, domain=self, operation="defer_reduce")
    if into.length != operand.length:
        raise InvalidArgument(
            f"{operand.length} bytes to combine with {into.length}",
            errno=codes.EINVAL,
            operation="defer_reduce",
            remedy="cut the longer one: region[begin:end]",
        )
    work = new_work(self, lib.OFP_WORK_REDUCE, after, completes, "defer_reduce")
    record = work.operation
    record.atomic_op, record.datatype = what, kind
    record.region, record.offset, record.length = operand.region, operand.offset, operand.length
    record.result_region, record.result_offset = into.region, into.offset
    return queue_work(self, work, "defer_reduce")


def flush_work(self: Domain) -> int:
    """Cancel all deferred work that has not started, posts with `after` too. Returns how much."""
    flushed = lib.ofp_work_flush(self._pointer("flush_work"))
    return check(flushed, operation="flush_work", provider=self.provider)
