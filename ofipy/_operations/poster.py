# SPDX-License-Identifier: BSD-3-Clause
"""Posters: what an endpoint, an alias or a receive context posts its operations with; C, in ``ofipy/requests``."""

from typing import TYPE_CHECKING, Any

from ofipy._base.atomic_types import AtomicOp
from ofipy._base.binding import drain_log, ffi, lib, nanoseconds
from ofipy._base.flags import COMPLETE_FLAGS
from ofipy._completion.request import COMPLETED, FetchRequest, Request, make_poller
from ofipy._completion.together import start_all
from ofipy._memory.allocation import MemoryDomain
from ofipy._memory.region import Region
from ofipy._memory.remote import RemoteRegion
from ofipy._requests import CALLS, OBJECTS, Poster, bind

if TYPE_CHECKING:
    import weakref


__all__ = ["CLOSED", "Poster", "make_poster"]

_ATOMIC_OPS = {key: int(op) for op in AtomicOp for key in (op, op.name.lower())}

bind(
    tuple(int(ffi.cast("uintptr_t", ffi.addressof(lib, name))) for name in CALLS),
    tuple(
        {
            "nanoseconds": nanoseconds,
            "drain_log": drain_log,
            "Region": Region,
            "Request": Request,
            "FetchRequest": FetchRequest,
            "AtomicOp": AtomicOp,
            "ATOMIC_OPS": _ATOMIC_OPS,
            "RemoteRegion": RemoteRegion,
            "COMPLETE_FLAGS": COMPLETE_FLAGS,
            "COMPLETED": COMPLETED,
            "start_all": start_all,
            "make_poller": make_poller,
        }[name]
        for name in OBJECTS
    ),
)

CLOSED = Poster(0, None, None, None, lambda address, length: None, [], lambda array, address, length: None, 0)
"""The poster of what is not enabled: it posts nothing, and the general way says why."""


def make_poster(pointer: Any, owner: Any, domain: MemoryDomain, vector: "weakref.ref[Any]") -> Poster:
    """The poster of an open handle in C, whose memory `owner` keeps, for peers that refer to `vector`."""
    return Poster(
        int(ffi.cast("uintptr_t", pointer)),
        owner,
        domain,
        vector,
        domain._memory.find,
        domain._memory._starts,
        domain._memory.owned.find,
        domain._memory.owned.above,
    )
