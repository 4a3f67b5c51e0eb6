# SPDX-License-Identifier: BSD-3-Clause
"""What the hook ``profile`` has counted."""

from __future__ import annotations

import errno

from ofipy._base.binding import check, ffi, lib
from ofipy._base.errors import NotSupported
from ofipy._base.record import Record
from ofipy._operations.initiator import Initiator

__all__ = ["ProfileRow", "profile"]


class ProfileRow(Record):
    """The operations of one kind with one peer that have ended.

    The histograms count operations that ended well. A key is the least number that it stands for: ``{0: 2, 8: 5}`` are
    two of 0 and five of 8 to 15, as each reaches to the next power of two.
    """

    operation: str
    """The method that posts it, such as ``tsend``."""
    peer: int | None
    """Index in the address vector; None: a receive from any peer that no message came for, or a sender of no entry."""
    address: str
    """Of the peer; empty where it is not known."""
    operations: int
    errors: int
    """Those that failed or were cancelled; they are among the operations."""
    bytes: int
    """Of the others."""
    sizes: dict[int, int]
    """Bytes of an operation."""
    latencies: dict[int, int]
    """Nanoseconds from post to completion."""


def profile(self: Initiator) -> list[ProfileRow]:
    """What the hook ``profile`` has counted since it was opened: a row for each kind of operation and peer.

    Raises
    ------
    NotSupported
        When it was opened without that hook.

    Examples
    --------
    >>> with ofipy.open(hooks="profile") as ep:
    ...     ep.tsend(b"hello", ep.insert(ep.address), tag=1).wait()
    ...     row = ep.profile()[0]
    >>> row.operation, row.operations, row.bytes, row.sizes
    ('tsend', 1, 5, {4: 1})
    """
    pointer, provider = self._pointer("profile"), self._domain.provider
    text, length = ffi.NULL, 0
    # It may grow between two looks.
    while (needed := lib.ofp_endpoint_hook_report(pointer, b"profile", text, length)) >= length:
        length = needed + 1
        text = ffi.new("char[]", length)
    if needed == -errno.ENOENT:
        raise NotSupported(
            "the endpoint was opened without the hook profile",
            operation="profile",
            provider=provider,
            remedy='open it with hooks="profile", or set OFIPY_HOOKS=profile',
        )
    check(needed, operation="profile", provider=provider)
    # Seldom asked for, unlike the rest of an endpoint.
    import json

    rows = json.loads(ffi.string(text).decode(errors="replace"))["rows"]
    return [
        ProfileRow(**row | {name: dict(row[name]) for name in ("sizes", "latencies")})
        for row in reversed(rows)
    ]
