# SPDX-License-Identifier: BSD-3-Clause
"""Memory of collectives: buffers of any kind, their element, and how many elements each member has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ofipy._base.arrays import np
from ofipy._base.atomic_types import AtomicOp, Datatype
from ofipy._base.binding import ffi, lib
from ofipy._base.errors import BufferTypeError, InvalidArgument
from ofipy._base.limits import whole_number
from ofipy._memory.allocation import MemoryDomain
from ofipy._memory.buffers import LocalMemory, local_memory
from ofipy._memory.foreign import host_array

__all__ = ["OPS", "Buffer", "Counts", "element_counts", "parse_op", "reduced_type"]

Counts = Sequence[int]

_OPS = ("min", "max", "sum", "prod", "lor", "land", "bor", "band", "lxor", "bxor")
OPS = {key: int(AtomicOp[name.upper()]) for name in _OPS for key in (name, AtomicOp[name.upper()])}
"""Numbers of operations, by name and member."""
_LOGICAL = frozenset(OPS[name] for name in ("lor", "land", "lxor"))
_INT64_MAX = 2**63 - 1


class Buffer:
    """One buffer of a collective; None stands for none.

    Parameters
    ----------
    buffer : buffer, Region, strided array or None
        What a rank gives or gets.
    domain : Domain
        Whose regions it may lie in.
    writable : bool
        It receives. Then it has to be one piece of memory; one that is only read is copied where it is not.
    operation : str
        For messages.
    """

    __slots__ = ("array", "itemsize", "length", "memory")

    def __init__(self, buffer: Any, domain: MemoryDomain, writable: bool, operation: str) -> None:
        self.array = _as_array(buffer, writable, operation)
        """The buffer as an array, None where it is none, as a region."""
        if self.array is not None and not self.array.flags.c_contiguous:
            if writable:
                raise BufferTypeError(
                    f"an array of shape {self.array.shape} and strides {self.array.strides} is not one piece of memory",
                    operation=operation,
                    remedy="use a contiguous array: numpy.ascontiguousarray(array) makes one",
                )
            buffer = self.array = np.ascontiguousarray(self.array)
        memory = LocalMemory(0, 0, 0, None, 0, None)
        if buffer is not None:
            memory = local_memory(buffer, domain=domain, writable=writable, operation=operation)
        if memory.count:
            raise BufferTypeError(
                f"{operation} takes one piece of memory, not a list of {memory.count}", operation=operation
            )
        self.memory = memory
        self.length = memory.length
        """Bytes."""
        self.itemsize = 1 if self.array is None else self.array.itemsize
        """Bytes of an element: of a dtype, 1 for memory without one."""


def _as_array(buffer: Any, writable: bool, operation: str) -> Any:
    if isinstance(buffer, np.ndarray) or buffer is None:
        return buffer
    try:
        view = memoryview(buffer)
    except TypeError:
        return host_array(buffer, writable=writable, operation=operation)
    return np.asarray(view) if view.nbytes else None


def parse_op(op: str | AtomicOp, operation: str) -> int:
    """The number of a reduction's operation.

    Raises
    ------
    InvalidArgument
        When it is none.
    """
    try:
        found = OPS.get(op)
    except TypeError:
        found = None
    if found is None:
        raise InvalidArgument(
            f"op={op!r}",
            operation=operation,
            remedy=f"one of {', '.join(_OPS)} is meant; objects ({operation}_obj) take any function",
        )
    return found


def reduced_type(buffer: Buffer, dtype: Any, op: int, operation: str) -> int:
    """The datatype of what is reduced.

    Raises
    ------
    BufferTypeError, InvalidArgument
        When it has no dtype, or one on which the operation does not work.
    """
    named = dtype if dtype is not None else None if buffer.array is None else buffer.array.dtype
    if named is None:
        raise BufferTypeError(
            "memory without a dtype cannot be reduced",
            operation=operation,
            remedy="use an array, or say dtype=",
        )
    if isinstance(named, str) and named == "bfloat16":
        number = int(lib.OFP_BFLOAT16)
    elif np.dtype(named) == np.bool_:
        if op not in _LOGICAL:
            raise InvalidArgument(
                "bool has no such operation",
                operation=operation,
                remedy="use lor, land or lxor, or another dtype",
            )
        number = int(lib.OFP_UINT8)
    else:
        number = int(Datatype.from_dtype(named))
    size = int(lib.ofp_reduction_size(op, number))
    if not size:
        raise InvalidArgument(
            f"{operation} of {named}: there is no {AtomicOp(op).name.lower()} of this type",
            operation=operation,
        )
    if buffer.length % size:
        raise InvalidArgument(f"{buffer.length} bytes are no whole elements of {named}", operation=operation)
    return number


def element_counts(counts: Counts, size: int, itemsize: int, operation: str, name: str = "counts") -> Any:
    """``uint64_t[size]``: bytes of each member's block, or elements where `itemsize` is 1.

    Raises
    ------
    InvalidArgument
        When they are not one whole number for each rank.
    """
    if isinstance(counts, str):
        raise InvalidArgument(
            f"{name}={counts!r}",
            operation=operation,
            remedy='gather and allgather take counts="ask", alltoall into_counts="ask"; others take numbers',
        )
    if len(counts) != size:
        raise InvalidArgument(
            f"{len(counts)} {name}; one for each of {size} ranks is meant", operation=operation
        )
    numbers = [
        whole_number(name, each, 0, _INT64_MAX // itemsize, operation=operation) * itemsize for each in counts
    ]
    return ffi.new("uint64_t[]", numbers)
