# SPDX-License-Identifier: BSD-3-Clause
"""Operation records as numpy sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ofipy._base.arrays import np
from ofipy._base.binding import ffi, lib
from ofipy._base.limits import whole_number

__all__ = [
    "COMPLETION_DTYPE",
    "OPERATION_DTYPE",
    "RECORD_VERSION",
    "SEGMENT_DTYPE",
    "operations",
    "record_dtype",
]

RECORD_VERSION: int = lib.OFP_RECORD_VERSION
"""Version of the layouts of :data:`OPERATION_DTYPE` and :data:`COMPLETION_DTYPE`."""


def record_dtype(name: str, size: int) -> np.dtype[np.void]:
    """The dtype of a C structure of integers, checked against its documented size."""
    structure = ffi.typeof(name)
    names, formats, offsets = [], [], []
    for field, description in structure.fields:
        kind = description.type
        signed = int(ffi.cast(kind, -1)) < 0
        names.append(field)
        formats.append(f"{'i' if signed else 'u'}{ffi.sizeof(kind)}")
        offsets.append(description.offset)
    dtype = np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": ffi.sizeof(structure)}
    )
    if dtype.itemsize != size:
        raise ImportError(
            f"{name} has {dtype.itemsize} bytes, not {size}: the extension module is of another version"
        )
    return dtype


if TYPE_CHECKING:
    COMPLETION_DTYPE: np.dtype[np.void]
    OPERATION_DTYPE: np.dtype[np.void]
    SEGMENT_DTYPE: np.dtype[np.void]

_RECORDS = {
    "COMPLETION_DTYPE": ("struct ofp_completion", 64),
    "OPERATION_DTYPE": ("struct ofp_operation", 128),
    "SEGMENT_DTYPE": ("struct ofp_segment", 24),
}


def __getattr__(name: str) -> np.dtype[np.void]:
    """A dtype is made when it is first named, since that imports numpy; then it is an attribute of the module."""
    if name not in _RECORDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _get_dtype(name)


def _get_dtype(name: str) -> np.dtype[np.void]:
    found: np.dtype[np.void] | None = globals().get(name)
    if found is not None:
        return found
    # Of two threads both get the dtype of the first: posting.py compares identities.
    first: np.dtype[np.void] = globals().setdefault(name, record_dtype(*_RECORDS[name]))
    return first


def operations(count: int) -> np.ndarray[Any, np.dtype[np.void]]:
    """An array of `count` operation records, all zero, cache-line aligned in C memory."""
    count = whole_number("count", count, 0, lib.OFP_COUNT_MAX, "records")
    memory = ffi.new("char[]", count * 128 + 64)
    skip = -int(ffi.cast("uintptr_t", memory)) % 64
    return np.frombuffer(ffi.buffer(memory), dtype=_get_dtype("OPERATION_DTYPE"), count=count, offset=skip)
