# SPDX-License-Identifier: BSD-3-Clause
"""The edge to the loops in C that measure the core: the one importer of ``_measure``.

The loops have no core in them. They call the one in ``_ofp``, by addresses that are set here.
"""

from typing import Any

from ofipy._base import binding
from ofipy._measure import ffi as _ffi
from ofipy._measure import lib as _lib

__all__ = ["ffi", "lib"]

# Untyped on purpose, as in the core's binding. Its types are these too, so pointers go from one to the other.
lib: Any = _lib
ffi: Any = _ffi

_CALLS = ("post", "cq_read", "cq_wait", "domain_progress", "start", "request_take")

lib.ofp_measure_bind(
    ffi.new(
        "struct ofp_measure_calls *",
        {name: binding.ffi.addressof(binding.lib, f"ofp_{name}") for name in _CALLS},
    )
)
