# SPDX-License-Identifier: BSD-3-Clause
"""Which atomic operations there are; a method of a domain."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from ofipy._base.atomic_types import AtomicKind, AtomicOp, Datatype, parse_datatype, parse_kind
from ofipy._base.binding import check, ffi, lib
from ofipy._base.flags import parse_enum
from ofipy._discovery.domain import Domain

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["atomic_valid"]


def atomic_valid(
    self: Domain,
    op: AtomicOp | str,
    dtype: Datatype | npt.DTypeLike,
    *,
    kind: AtomicKind = "base",
    device: bool = False,
) -> int:
    """Ask whether endpoints of this domain carry out an atomic operation (fi_query_atomic(3)).

    Parameters
    ----------
    op : AtomicOp or str
        What it does to its target.
    dtype : Datatype or dtype
        Type of an element.
    kind : str
        ``base``; ``fetch`` returns what the target held before; ``compare`` takes a compare operand too.
    device : bool
        Ask of the device's own, on memory registered with ``access="device_atomic"``.

    Returns
    -------
    int
        Elements of the longest vector, 0 when there is no such operation.

    Raises
    ------
    BufferTypeError
        When no datatype is like the dtype.
    InvalidArgument
        When there is no operation or kind of that name.
    """
    count = ffi.new("uint64_t *")
    result = lib.ofp_atomic_query(
        self._pointer("atomic_valid"),
        parse_kind(kind) | (lib.OFP_DEVICE_ATOMIC if device else 0),
        parse_enum(AtomicOp, op),
        parse_datatype(dtype),
        count,
    )
    if result == -errno.EOPNOTSUPP:
        return 0
    check(result, operation="atomic_valid", provider=self.provider)
    return int(count[0])
