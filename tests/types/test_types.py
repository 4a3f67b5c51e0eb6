# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the documentation, and what is promised of types, as strict type checkers see them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
# What programs import that has no types.
UNTYPED = ("distributed", "dask", "mpi4py", "uvloop", "torch", "zmq", "msgpack", "cloudpickle", "h5py")


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def programs() -> dict[str, str]:
    """Those that stand alone: they import what they use."""
    found = {}
    for page in pages():
        for number, (_indent, text) in enumerate(FENCED.findall(page.read_text())):
            if re.search(r"^ *(import ofipy|from ofipy)", text, re.MULTILINE) and ">>>" not in text:
                name = f"{page.relative_to(ROOT).with_suffix('')}_{number}".replace("/", "_").replace(
                    "-", "_"
                )
                found[name] = dedent(text)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in programs().items():
        (folder / f"{name}.py").write_text(text)
    (folder / "revealed.py").write_text((Path(__file__).parent / "revealed.py").read_text())
    return folder


def run(command: list[str], folder: Path) -> None:
    # An editable installation leads no checker to the sources.
    ran = subprocess.run(
        [sys.executable, "-P", "-m", *command],
        cwd=folder,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_there_are_programs() -> None:
    assert len(programs()) >= 30


def test_mypy(folder: Path) -> None:
    pytest.importorskip("mypy")
    sections = "".join(
        f"[mypy-{name}.*]\nignore_missing_imports = true\nfollow_imports = skip\n" for name in UNTYPED
    )
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = true\nscripts_are_modules = true\n{sections}")
    run(["mypy", *sorted(each.name for each in folder.glob("*.py"))], folder)


def test_pyright(folder: Path) -> None:
    pytest.importorskip("basedpyright")
    settings = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT)],
        # Of what others lack.
        "reportMissingImports": False,
        "reportMissingTypeStubs": False,
        "reportMissingModuleSource": False,
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
        "reportUnknownArgumentType": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    run(["basedpyright", "--pythonpath", sys.executable], folder)
