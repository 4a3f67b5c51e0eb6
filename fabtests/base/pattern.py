# SPDX-License-Identifier: BSD-3-Clause
"""What messages hold when they are verified: digits and letters over and over, as libfabric's programs have it."""

import string

import numpy as np
import numpy.typing as npt

from fabtests.base.program import Failed

__all__ = ["check", "pattern"]

Bytes = npt.NDArray[np.uint8]

_ALPHABET = np.frombuffer(
    (string.digits + string.ascii_lowercase + string.ascii_uppercase).encode(), np.uint8
)


def pattern(size: int) -> Bytes:
    """The first `size` bytes of it."""
    return np.resize(_ALPHABET, size)


def check(data: Bytes, what: str = "message") -> None:
    """Raise when `data` is anything else.

    Raises
    ------
    Failed
        With the first byte that differs.
    """
    expected = pattern(data.size)
    wrong = np.flatnonzero(data != expected)
    if wrong.size:
        at = int(wrong[0])
        raise Failed(
            f"{what} of {data.size} bytes: {wrong.size} differ, the first at {at} "
            f"({int(data[at]):#04x} for {int(expected[at]):#04x})"
        )
