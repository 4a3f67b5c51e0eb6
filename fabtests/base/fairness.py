# SPDX-License-Identifier: BSD-3-Clause
"""Whether each of many had its share."""

import numpy as np
import numpy.typing as npt

__all__ = ["jain"]


def jain(counts: npt.NDArray[np.int64]) -> float:
    """Jain's index: 1 when all have the same, 1 / n when one of n has all (R. Jain, DEC-TR-301, 1984)."""
    total = float(counts.sum())
    return total * total / (len(counts) * float(np.square(counts.astype(float)).sum())) if total else 0.0
