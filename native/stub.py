# SPDX-License-Identifier: BSD-3-Clause
"""Writes `ofipy/_ofp.pyi`, the types of the cffi binding, from the same declarations as the binding itself."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cdef import ffibuilder
from cffi import model

STUB = Path(__file__).resolve().parent.parent / "ofipy" / "_ofp.pyi"
HEADER = """# SPDX-License-Identifier: BSD-3-Clause
# Made by native/stub.py from the core's headers.
from typing import Any

from cffi import FFI

ffi: FFI

class _Library:
"""


def python_type(ctype: Any) -> str:
    """Return the annotation for an argument or a result of this C type."""
    if isinstance(ctype, model.VoidType):
        return "None"
    if isinstance(ctype, model.PrimitiveType):
        return "bool" if ctype.name == "_Bool" else "int"
    return "Any"


def function(name: str, ctype: Any) -> str:
    """Return the method that stands for a C function."""
    arguments = [f"_{index}: {python_type(argument)}" for index, argument in enumerate(ctype.args)]
    return f"    def {name}({', '.join(['self', *arguments, '/'])}) -> {python_type(ctype.result)}: ..."


def stub() -> str:
    """Return the text of the stub."""
    parser = ffibuilder._parser
    functions = [
        function(key.removeprefix("function "), declared)
        for key, (declared, _) in sorted(parser._declarations.items())
        if key.startswith("function ")
    ]
    constants = [f"    {name}: int" for name in sorted(parser._int_constants)]
    return HEADER + "\n".join(constants + functions) + "\n\nlib: _Library\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            0 if STUB.read_text() == stub() else f"{STUB} is out of date: run python {Path(__file__).name}"
        )
    STUB.write_text(stub())
