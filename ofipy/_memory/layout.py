# SPDX-License-Identifier: BSD-3-Clause
"""Layouts: local memory in more pieces than segments, which C packs and unpacks piece by piece."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ofipy._base.arrays import np
from ofipy._base.binding import ffi, lib

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LAYOUT", "make_layout"]

LAYOUT: int = lib.OFP_LAYOUT
"""As the number of segments of a record: `segments` is the address of a layout."""

# The fields of struct ofp_layout_part and struct ofp_dimension.
_PART = [
    ("address", "u8"),
    ("run", "u8"),
    ("length", "u8"),
    ("start", "u8"),
    ("rank", "u4"),
    ("dimension", "u4"),
]
_DIMENSION = [("count", "u8"), ("stride", "i8")]


def make_layout(arrays: Iterable[npt.NDArray[Any]]) -> tuple[Any, int, Any]:
    """Describe the elements of arrays, one array after another, each in C order.

    Parameters
    ----------
    arrays : iterable of numpy.ndarray
        Of any shape and strides.

    Returns
    -------
    layout : ``struct ofp_layout *``
        Valid as long as `keep`.
    length : int
        Bytes of all elements.
    keep
        What the layout refers to, the arrays included.
    """
    kept = [array for array in arrays if array.size]
    parts: list[tuple[int, int, int, int, int, int]] = []
    dimensions: list[tuple[int, int]] = []
    start = 0
    for array in kept:
        run, own = _dimensions(array)
        parts.append((array.ctypes.data, run, array.nbytes, start, len(own), len(dimensions)))
        dimensions += own
        start += array.nbytes
    part_table, dimension_table = np.array(parts, _PART), np.array(dimensions, _DIMENSION)
    assert part_table.itemsize == ffi.sizeof("struct ofp_layout_part")
    assert dimension_table.itemsize == ffi.sizeof("struct ofp_dimension")
    layout = ffi.new(
        "struct ofp_layout *",
        {
            "length": start,
            "parts": part_table.ctypes.data if parts else 0,
            "dimensions": dimension_table.ctypes.data if dimensions else 0,
            "part_count": len(parts),
            "dimension_count": len(dimensions),
        },
    )
    return layout, start, (layout, part_table, dimension_table, kept)


def _dimensions(array: npt.NDArray[Any]) -> tuple[int, list[tuple[int, int]]]:
    """Bytes of a contiguous run of elements, and count and stride of the dimensions around it, the outermost first.

    Neighbouring dimensions that step as one are one.
    """
    run = array.itemsize
    found: list[tuple[int, int]] = []
    for count, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if count == 1:
            continue
        if not found and stride == run:
            run *= count
        elif found and stride == found[-1][0] * found[-1][1]:
            found[-1] = (count * found[-1][0], found[-1][1])
        else:
            found.append((count, stride))
    return run, found[::-1]
