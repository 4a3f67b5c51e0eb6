# SPDX-License-Identifier: BSD-3-Clause
"""The tutorials for those who come from another library: both programs of a lesson print what stands below them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from started import launcher, run

LESSONS = Path(__file__).parents[2] / "docs" / "tutorial"
LESSON = re.compile(
    r"```python\n# (\w+)\n(.*?)```.*?```python\n# ofipy\n(.*?)```.*?```text\n(.*?)```", re.DOTALL
)
PROCESSES = "2"


def lessons(page: str) -> list[tuple[str, str, str, str]]:
    return LESSON.findall((LESSONS / page).read_text())


def write(folder: Path, program: str) -> str:
    (folder / "program.py").write_text(program)
    return str(folder / "program.py")


def needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:  # looked for only: importing mpi4py starts MPI
        pytest.skip(f"{module} is not installed")


@pytest.mark.parametrize("number", range(6))
def test_from_mpi4py(number: int, tmp_path: Path) -> None:
    found = lessons("from-mpi4py.md")
    assert len(found) == 6
    _, theirs, ours, output = found[number]
    tasks = "Executor" in ours
    python = [sys.executable, *(["-m", "ofipy.executor"] if tasks else [])]
    ran = run(sys.executable, "-m", "ofipy", "run", "-n", PROCESSES, *python, write(tmp_path, ours))
    assert re.sub(r"^\[\d\] ", "", ran.stdout, flags=re.MULTILINE) == output, ran.stderr
    needs("mpi4py")
    python = [sys.executable, *(["-m", "mpi4py.futures"] if tasks else [])]
    ran = run(launcher("mpiexec.hydra"), "-n", PROCESSES, *python, write(tmp_path, theirs))
    assert ran.stdout == output, ran.stderr


@pytest.mark.parametrize("number", range(3))
def test_from_pyzmq(number: int, tmp_path: Path) -> None:
    found = lessons("from-pyzmq.md")
    assert len(found) == 3
    _, theirs, ours, output = found[number]
    ran = run(sys.executable, write(tmp_path, ours))
    assert ran.stdout == output, ran.stderr
    needs("zmq")
    ran = run(sys.executable, write(tmp_path, theirs))
    assert ran.stdout == output, ran.stderr


def test_from_libfabric(tmp_path: Path) -> None:
    page = (LESSONS / "from-libfabric.md").read_text()
    found = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL)
    assert len(found) == 2
    for program, output in found:
        ran = run(sys.executable, write(tmp_path, program))
        assert ran.stdout == output, ran.stderr


def test_from_libfabric_in_c(tmp_path: Path) -> None:
    page = (LESSONS / "from-libfabric.md").read_text()
    output = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "self.c").write_text(re.search(r"```c\n(.*?)```", page, re.DOTALL)[1])
    program = str(tmp_path / "self")
    try:
        built = run("cc", "-Wall", "-Werror", "-o", program, str(tmp_path / "self.c"), "-lfabric")
    except FileNotFoundError:
        pytest.skip("a C compiler is not installed")
    if "rdma/fabric.h" in built.stderr:
        pytest.skip("libfabric's header is not installed")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [program], capture_output=True, text=True, timeout=60, env={"FI_PROVIDER": "tcp;ofi_rxm"}
    )
    assert ran.stdout == output, ran.stderr
