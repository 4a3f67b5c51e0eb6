# SPDX-License-Identifier: BSD-3-Clause
"""Operation records as numpy sees them."""

from typing import Any

import numpy as np

from ofipy._base.binding import ffi, lib
from ofipy._base.limits import whole_number

__all__ = ["OPERATION_DTYPE", "RECORD_VERSION", "SEGMENT_DTYPE", "operations", "record_dtype"]

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


OPERATION_DTYPE = record_dtype("struct ofp_operation", 128)
SEGMENT_DTYPE = record_dtype("struct ofp_segment", 24)


def operations(count: int) -> np.ndarray[Any, np.dtype[np.void]]:
    """An array of `count` operation records, all zero, cache-line aligned in C memory."""
    count = whole_number("count", count, 0, lib.OFP_COUNT_MAX, "records")
    memory = ffi.new("char[]", count * 128 + 64)
    skip = -int(ffi.cast("uintptr_t", memory)) % 64
    return np.frombuffer(ffi.buffer(memory), dtype=OPERATION_DTYPE, count=count, offset=skip)
