# SPDX-License-Identifier: BSD-3-Clause
"""Writes `ofipy/_ofp.pyi` and `ofipy/_measure.pyi`, the types of the cffi bindings, from the bindings' declarations."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cdef import ffibuilder, measure_builder
from cffi import model

FOLDER = Path(__file__).resolve().parent.parent / "ofipy"
STUBS = {FOLDER / "_ofp.pyi": ffibuilder, FOLDER / "_measure.pyi": measure_builder}
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


def stub(builder: Any) -> str:
    """Return the text of a binding's stub, without what is of another binding that it includes."""
    parser, included = builder._parser, [other._parser for other in builder._included_ffis]
    functions = [
        function(key.removeprefix("function "), declared)
        for key, (declared, _) in sorted(parser._declarations.items())
        if key.startswith("function ") and not any(key in other._declarations for other in included)
    ]
    constants = [
        f"    {name}: int"
        for name in sorted(parser._int_constants)
        if not any(name in other._int_constants for other in included)
    ]
    return HEADER + "\n".join(constants + functions) + "\n\nlib: _Library\n"


if __name__ == "__main__":
    for path, builder in STUBS.items():
        if "--check" not in sys.argv:
            path.write_text(stub(builder))
        elif path.read_text() != stub(builder):
            sys.exit(f"{path} is out of date: run python {Path(__file__).name}")
