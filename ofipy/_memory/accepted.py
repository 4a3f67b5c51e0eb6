# SPDX-License-Identifier: BSD-3-Clause
"""What operations take as memory, for annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

__all__ = ["Memory"]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    from ofipy._memory.region import Region

    class _Exporter(Protocol):
        """An array of another library, by DLPack."""

        def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

        def __dlpack_device__(self) -> tuple[Any, Any]: ...

    _Piece: TypeAlias = Region | Buffer | npt.NDArray[Any] | np.generic | _Exporter
    Memory: TypeAlias = _Piece | Sequence[_Piece]
else:
    # Only type checkers look at it, and a program that does not run them needs none of the packages above.
    Memory: TypeAlias = Any
"""What operations take as memory: a region, an object with the buffer protocol (bytes, bytearray, memoryview, numpy
arrays), an array of another library with DLPack, or a list of these. Text, numbers and lists of numbers are none."""
