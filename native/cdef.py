# SPDX - License - Identifier : BSD - 3 - Clause
"""Makes the cffi binding `ofipy._ofp` from the core's public headers, which so stay the one place of truth."""

import re
from pathlib import Path

from cffi import FFI

INCLUDE = Path(__file__).resolve().parent / "include" / "ofipy"


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


def cdef() -> str:
    """Return the declarations of the whole binding."""
    headers = ("types.h", "ofp.h", "request.h", "connect.h", "measure.h", "ways.h")
    return "".join(declarations(header) for header in headers)


ffibuilder = FFI()
ffibuilder.cdef(cdef())
ffibuilder.set_source(
    "ofipy._ofp",
    "".join(f'#include "ofipy/{header}.h"\n' for header in ("connect", "measure", "request", "ways")),
)
