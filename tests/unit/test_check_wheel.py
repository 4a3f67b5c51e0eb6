# SPDX-License-Identifier: BSD-3-Clause
"""The check of wheels (.ci/check_wheel.py): which libraries it refuses, and what it says."""

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

ENTRY = "ofp_provider_entry"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """The program as a module."""
    path = Path(__file__).parents[2] / ".ci" / "check_wheel.py"
    spec = importlib.util.spec_from_file_location("check_wheel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(folder: Path, body: str, *options: str) -> Path:
    """A library whose only public function has this body."""
    source, library = folder / "library.c", folder / "library.so"
    source.write_text(
        f"#include <unistd.h>\nint getcpu();\nint PyErr_Occurred();\nint {ENTRY}(void) {{ {body} }}\n"
    )
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", *options, source, "-o", library], check=True)
    return library


def test_open_symbol_is_refused_by_its_name(check: ModuleType, tmp_path: Path) -> None:
    # Linked with no C library: so is a symbol that the C library of an older system does not have.
    library = build(tmp_path, "return getcpu();", "-nostdlib")
    with pytest.raises(SystemExit, match=r"^_verbs leaves open getcpu: ") as told:
        check.check_library(library, "_verbs", {ENTRY}, set())
    assert isinstance(told.value.code, str), "a sentence as exit code is status 1"


def test_symbols_of_the_c_library_and_of_python_are_accepted(check: ModuleType, tmp_path: Path) -> None:
    library = build(tmp_path, "return getpid() + PyErr_Occurred();")
    check.check_library(library, "_shm", {ENTRY}, set())


def test_a_library_without_versions_is_looked_up_in_its_c_library(check: ModuleType, tmp_path: Path) -> None:
    library = build(tmp_path, "return getcpu() + getpid();", "-nostdlib")
    check.check_library(library, "_shm", {ENTRY}, {"getcpu", "getpid"})
    with pytest.raises(SystemExit, match="leaves open getcpu: "):
        check.check_library(library, "_shm", {ENTRY}, {"getpid"})


def test_other_exports_are_refused(check: ModuleType, tmp_path: Path) -> None:
    library = build(tmp_path, "return 0;")
    with pytest.raises(SystemExit, match=rf"exports \['{ENTRY}'\], not \['PyInit__ofp'\]"):
        check.check_library(library, "_ofp", {"PyInit__ofp"}, set())
