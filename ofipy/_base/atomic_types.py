# SPDX-License-Identifier: BSD-3-Clause
"""Names of atomic operations and of the types that they work on (fi_atomic(3))."""

from __future__ import annotations

import enum
from functools import cache
from typing import TYPE_CHECKING, Literal, Self

from ofipy._base.arrays import np
from ofipy._base.binding import lib
from ofipy._base.errors import BufferTypeError, InvalidArgument
from ofipy._base.flags import Op

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["KINDS", "AtomicKind", "AtomicOp", "Datatype", "parse_datatype", "parse_kind"]

AtomicKind = Literal["base", "fetch", "compare"]

KINDS: dict[str, Op] = {"base": Op.ATOMIC, "fetch": Op.FETCH_ATOMIC, "compare": Op.COMPARE_ATOMIC}


class AtomicOp(enum.IntEnum):
    """What an atomic operation does to its target, with the target's value on the left (fi_atomic(3))."""

    MIN = lib.OFP_ATOMIC_MIN
    """The operand, where it is less."""
    MAX = lib.OFP_ATOMIC_MAX
    """The operand, where it is greater."""
    SUM = lib.OFP_ATOMIC_SUM
    PROD = lib.OFP_ATOMIC_PROD
    LOR = lib.OFP_ATOMIC_LOR
    """Logical or: 0 or 1."""
    LAND = lib.OFP_ATOMIC_LAND
    BOR = lib.OFP_ATOMIC_BOR
    """Or, bit by bit."""
    BAND = lib.OFP_ATOMIC_BAND
    LXOR = lib.OFP_ATOMIC_LXOR
    BXOR = lib.OFP_ATOMIC_BXOR
    READ = lib.OFP_ATOMIC_READ
    """Fetch only; the target stays."""
    WRITE = lib.OFP_ATOMIC_WRITE
    CSWAP = lib.OFP_ATOMIC_CSWAP
    """The operand, where the compare operand equals the target."""
    CSWAP_NE = lib.OFP_ATOMIC_CSWAP_NE
    CSWAP_LE = lib.OFP_ATOMIC_CSWAP_LE
    """The operand, where the compare operand is less than or equal to the target."""
    CSWAP_LT = lib.OFP_ATOMIC_CSWAP_LT
    CSWAP_GE = lib.OFP_ATOMIC_CSWAP_GE
    CSWAP_GT = lib.OFP_ATOMIC_CSWAP_GT
    MSWAP = lib.OFP_ATOMIC_MSWAP
    """The operand's bits, where the compare operand has ones."""
    DIFF = lib.OFP_ATOMIC_DIFF
    """The target less the operand."""


class Datatype(enum.IntEnum):
    """Type of one element of an atomic operation."""

    INT8 = lib.OFP_INT8
    UINT8 = lib.OFP_UINT8
    INT16 = lib.OFP_INT16
    UINT16 = lib.OFP_UINT16
    INT32 = lib.OFP_INT32
    UINT32 = lib.OFP_UINT32
    INT64 = lib.OFP_INT64
    UINT64 = lib.OFP_UINT64
    FLOAT = lib.OFP_FLOAT
    DOUBLE = lib.OFP_DOUBLE
    FLOAT_COMPLEX = lib.OFP_FLOAT_COMPLEX
    DOUBLE_COMPLEX = lib.OFP_DOUBLE_COMPLEX
    FLOAT16 = lib.OFP_FLOAT16

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The type as numpy names it."""
        return np.dtype(_DTYPES[self])

    @classmethod
    def from_dtype(cls, dtype: npt.DTypeLike) -> Self:
        """Return the datatype of a numpy dtype.

        Parameters
        ----------
        dtype : dtype
            Anything that :class:`numpy.dtype` takes.

        Raises
        ------
        BufferTypeError
            When no datatype is like it.
        """
        try:
            wanted = np.dtype(dtype)
        except TypeError:
            raise BufferTypeError(f"{dtype!r} is not a dtype", remedy=_KNOWN) from None
        found = _datatypes().get(wanted)
        if found is None:
            remedy = _KNOWN if wanted.isnative else "convert it to this machine's byte order"
            raise BufferTypeError(f"atomic operations do not work on dtype {wanted}", remedy=remedy)
        return cls(found)


_DTYPES = {
    Datatype.INT8: "int8",
    Datatype.UINT8: "uint8",
    Datatype.INT16: "int16",
    Datatype.UINT16: "uint16",
    Datatype.INT32: "int32",
    Datatype.UINT32: "uint32",
    Datatype.INT64: "int64",
    Datatype.UINT64: "uint64",
    Datatype.FLOAT: "float32",
    Datatype.DOUBLE: "float64",
    Datatype.FLOAT_COMPLEX: "complex64",
    Datatype.DOUBLE_COMPLEX: "complex128",
    Datatype.FLOAT16: "float16",
}
_KNOWN = "known are " + ", ".join(_DTYPES.values())


@cache
def _datatypes() -> dict[np.dtype[np.generic], Datatype]:
    return {np.dtype(name): datatype for datatype, name in _DTYPES.items()}


def parse_datatype(dtype: Datatype | npt.DTypeLike) -> Datatype:
    """Return the datatype itself, or that of a numpy dtype."""
    return dtype if isinstance(dtype, Datatype) else Datatype.from_dtype(dtype)


def parse_kind(kind: str) -> Op:
    """Return the operation code of ``base``, ``fetch`` or ``compare``."""
    found = KINDS.get(kind)
    if found is None:
        raise InvalidArgument(f"kind={kind!r}; known are {', '.join(KINDS)}")
    return found
