# SPDX-License-Identifier: BSD-3-Clause
"""The storeys of the Python packages: imports point down. Circles in ofipy are judged by ``test_layout.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from source_graph import circles, graph_of_python
from test_layout import ROOT, long_files

STOREYS = ("_base", "_discovery", "_memory", "_completion", "_operations", "_objects")


def storey(module: str) -> int:
    """How high a module of ofipy is; what is public, and the command line, is above all storeys."""
    if module == "ofipy.typing":  # of the memory that operations take
        return STOREYS.index("_memory")
    folder = module.split(".")[1] if "." in module else ""
    return STOREYS.index(folder) if folder in STOREYS else len(STOREYS)


def test_imports_point_down() -> None:
    upwards = [
        f"{module} imports {other}"
        for module, others in graph_of_python(ROOT / "ofipy").items()
        for other in sorted(others)
        if storey(other) > storey(module)
    ]
    assert upwards == []


def test_the_private_modules_have_a_storey() -> None:
    private = [path.name for path in (ROOT / "ofipy").glob("_*.py") if not path.name.startswith("__")]
    assert private == []


def test_imports_of_fabtests_go_in_no_circle() -> None:
    assert circles(graph_of_python(ROOT / "fabtests"), 1) == []


def test_no_module_is_long() -> None:
    assert {
        path: lines for path, lines in long_files(ROOT).items() if path.startswith(("ofipy/", "fabtests/"))
    } == {}
