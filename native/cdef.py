# SPDX-License-Identifier: BSD-3-Clause
"""Makes the cffi bindings from the public headers, which so stay the one place of truth.

`ffibuilder` is the core's, `ofipy._ofp`; `measure_builder` that of the loops that measure it, `ofipy._measure`.
"""

import re
from pathlib import Path

from cffi import FFI

INCLUDE = Path(__file__).resolve().parent / "include" / "ofipy"
CORE = ("types.h", "statistics.h", "ofp.h", "request.h", "connect.h", "ways.h", "protocols.h", "collective.h")


def declarations(header: str) -> str:
    """Return what cffi can read of a header: declarations, enums and integer constants."""
    text = re.sub(r"/\*.*?\*/", "", (INCLUDE / header).read_text(), flags=re.DOTALL)
    kept = []
    for line in text.splitlines():
        constant = re.match(r"#define\s+(OFP_\w+)\s+(0x[0-9a-f]+|\d+)u?\s*$", line)
        if constant:
            kept.append(f"#define {constant[1]} {constant[2]}")
        elif not line.startswith("#"):
            kept.append(line)
    return "\n".join(kept)


def binding(module: str, headers: tuple[str, ...], over: FFI | None = None) -> FFI:
    """Return the builder of a binding of these headers; the types of the binding `over` are those of this one too."""
    builder = FFI()
    if over is not None:
        builder.include(over)
    builder.cdef("".join(declarations(header) for header in headers))
    # C looks at all types, also at those of the other binding.
    builder.set_source(module, "".join(f'#include "ofipy/{header}"\n' for header in (*CORE, *headers)))
    return builder


ffibuilder = binding("ofipy._ofp", CORE)
measure_builder = binding("ofipy._measure", ("measure.h",), over=ffibuilder)
