# SPDX-License-Identifier: BSD-3-Clause
"""numpy, imported by the first call that makes or takes an array.

Its import takes twice as long as that of the rest of ofipy, and a program that sends bytes needs no array.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

__all__ = ["is_array", "is_numpy_integer", "np"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """Stands for the module. An attribute is looked up once, and is one of this object from then on."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)
            return value

    np = _Numpy()


def is_array(value: object) -> TypeGuard[np.ndarray[Any, Any]]:
    """Whether it is an array of numpy's. No value is one before a program has imported numpy."""
    return _is_of_numpy(value, "ndarray")


def is_numpy_integer(value: object) -> TypeGuard[np.integer[Any]]:
    """Whether it is one of numpy's integers, as the fields of records are."""
    return _is_of_numpy(value, "integer")


def _is_of_numpy(value: object, name: str) -> bool:
    # Nothing is imported here: another thread may be importing numpy.
    kind = getattr(sys.modules.get("numpy"), name, None)
    return kind is not None and isinstance(value, kind)
