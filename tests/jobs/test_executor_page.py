# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the page about the executor, and the first one over other libraries."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from started import SECONDS, launcher, run

PAGE = (pages.PAGES / "use-the-executor.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
OUTPUTS = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
RIVALS = ("mpi4py", "dask")

pytestmark = pytest.mark.timeout(120)


def write(folder: Path, number: int) -> str:
    (folder / "program.py").write_text(PROGRAMS[number])
    return str(folder / "program.py")


def test_in_a_job(tmp_path: Path) -> None:
    ran = run(
        sys.executable,
        "-m",
        "ofipy",
        "run",
        "-n",
        "4",
        sys.executable,
        "-m",
        "ofipy.executor",
        write(tmp_path, 0),
    )
    assert ran.stdout == OUTPUTS[0], ran.stderr
    assert f"[0] {run(sys.executable, write(tmp_path, 0)).stdout}" == OUTPUTS[0]


def test_workers_that_join(tmp_path: Path) -> None:
    program = PROGRAMS[1].replace("listen=7471", "listen=0")
    (tmp_path / "serve.py").write_text(program)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "serve.py")], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            *_, address = process.stdout.readline().split()
            worker = run(sys.executable, "-m", "ofipy", "worker", address)
            assert (worker.returncode, worker.stdout, worker.stderr) == (0, "", "")
            assert process.communicate(timeout=SECONDS)[0] == "[0, 1, 4, 9, 16]\n"
        finally:
            process.kill()


def test_a_death(tmp_path: Path) -> None:
    assert run(sys.executable, write(tmp_path, 2)).stdout == OUTPUTS[1]


def test_as_short_as_over_others() -> None:
    counts = [
        pages.count(PROGRAMS[0]),
        *(pages.count((pages.RIVALS / f"tasks_{name}.py").read_text()) for name in RIVALS),
    ]
    assert counts[0] <= min(counts)
    assert f"| {' | '.join(map(str, counts))} |" in PAGE


def test_typed(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    for number in range(len(PROGRAMS)):
        ran = run(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", write(tmp_path, number))
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", RIVALS)
def test_others_say_the_same(name: str) -> None:
    module = {"mpi4py": "mpi4py", "dask": "distributed"}[name]
    if importlib.util.find_spec(module) is None:  # looked for only: importing mpi4py starts MPI
        pytest.skip(f"{module} is not installed")
    program = str(pages.RIVALS / f"tasks_{name}.py")
    command = [sys.executable, program]
    if name == "mpi4py":
        command = [launcher("mpiexec.hydra"), "-n", "4", sys.executable, "-m", "mpi4py.futures", program]
    ran = run(*command)
    assert f"[0] {ran.stdout}" == OUTPUTS[0], ran.stderr
