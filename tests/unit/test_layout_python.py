# SPDX-License-Identifier: BSD-3-Clause
"""The layout of the Python packages: storeys whose arrows point down, no circle, no long file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from layout_python import circles, import_graph, imports_of

ROOT = Path(__file__).resolve().parents[2]
OFIPY, FABTESTS = ROOT / "ofipy", ROOT / "fabtests"
STOREYS = ("_base", "_discovery", "_memory", "_completion", "_operations", "_objects")
LONGEST = 500


def storey(module: str) -> int:
    """How high a module of ofipy is; what is public, and the command line, is above all storeys."""
    folder = module.split(".")[1] if "." in module else ""
    return STOREYS.index(folder) if folder in STOREYS else len(STOREYS)


def test_imports_go_in_no_circle() -> None:
    assert circles(import_graph(OFIPY)) == []
    assert circles(import_graph(FABTESTS)) == []


def test_imports_point_down() -> None:
    upwards = [
        f"{module} imports {other}"
        for module, others in import_graph(OFIPY).items()
        for other in sorted(others)
        if storey(other) > storey(module)
    ]
    assert upwards == []


def test_the_private_modules_have_a_storey() -> None:
    assert [path.name for path in sorted(OFIPY.glob("_*.py")) if not path.name.startswith("__")] == []


def test_the_package_needs_no_benchmark() -> None:
    assert imports_of(OFIPY, "fabtests") == {}


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in (OFIPY, FABTESTS)
        for path in folder.rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_a_circle_is_found(tmp_path: Path) -> None:
    """Through a function, through types only, through a relative import and through a package."""
    package = tmp_path / "sample"
    (package / "inner").mkdir(parents=True)
    for name, text in {
        "__init__.py": "from sample.top import Top\n",
        "top.py": "import sample.inner.low\n",
        "a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sample.b import B\n",
        "b.py": "def late():\n    from . import c\n",
        "c.py": "from sample.inner import low\nfrom .a import A\n",
        "inner/__init__.py": "",
        "inner/low.py": "import json\nfrom ..a import A\n",
        "alone.py": "from sample import top\n",
    }.items():
        (package / name).write_text(text)
    graph = import_graph(package)
    assert graph["sample.alone"] == {"sample.top"}
    assert graph["sample.c"] == {"sample.inner.low", "sample.a"}
    assert circles(graph) == [["sample.a", "sample.b", "sample.c", "sample.inner.low"]]
    assert imports_of(package, "json") == {"sample.inner.low": {"json"}}
