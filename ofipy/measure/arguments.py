# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of the loops, checked and as C takes them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy._base.contents import refuse_objects
from ofipy._base.errors import InvalidArgument
from ofipy._base.limits import whole_number
from ofipy._base.measure_binding import ffi

__all__ = ["single_times", "view_memory", "whole_count"]


def view_memory(buffer: Any, *, writable: bool = False) -> Any:
    """The bytes of a contiguous buffer."""
    refuse_objects(buffer)
    return ffi.from_buffer("char[]", buffer, require_writable=writable)


def whole_count(name: str, value: int, operation: str) -> int:
    """How often something is to happen."""
    return whole_number(name, value, 1, 2**40, operation=operation)


def single_times(nanoseconds: npt.NDArray[np.int64] | None, iterations: int, operation: str) -> Any:
    """Where C puts the single times."""
    if nanoseconds is None:
        return ffi.NULL
    times = ffi.from_buffer("uint64_t[]", nanoseconds, require_writable=True)
    if len(times) < iterations:
        raise InvalidArgument(
            f"room for {len(times)} times of {iterations}; as many are meant", operation=operation
        )
    return times
