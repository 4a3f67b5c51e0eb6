# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the guides that people copy, as they stand, started as the page says and by `ofipy run`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from started import launcher, run

RUN = [sys.executable, "-m", "ofipy", "run", "-n"]


def lines(text: str) -> list[str]:
    """What was printed, without who said it, in any order."""
    return sorted(re.sub(r"^\[ ?\d+\] ", "", line) for line in text.splitlines())


def check(ran: subprocess.CompletedProcess[str], output: str) -> None:
    assert ran.returncode == 0, ran.stderr
    assert lines(ran.stdout) == lines(output)


def write(page: pages.Page, folder: Path) -> Path:
    ((name, program),) = page.programs.items()
    (folder / name).write_text(program)
    return folder / name


@pytest.mark.parametrize("name", pages.JOBS)
def test_as_the_page_says(name: str, tmp_path: Path) -> None:
    page = pages.read(name)
    program = write(page, tmp_path)
    command = page.command.replace(program.name, str(program)).split()
    if command[:2] == ["ofipy", "run"]:
        command[:1] = [sys.executable, "-m", "ofipy"]
    else:
        command[0] = launcher("mpiexec.hydra")
        command[command.index("python")] = sys.executable
    check(run(*command), page.output)


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
@pytest.mark.parametrize("name", pages.JOBS)
def test_over_each_provider(name: str, provider: str, tmp_path: Path) -> None:
    page = pages.read(name)
    processes = page.command.split("-n ")[1].split()[0]
    program = write(page, tmp_path)
    check(run(*RUN, processes, str(program), environment={"OFIPY_PROVIDER": provider}), page.output)


def test_hello(tmp_path: Path) -> None:
    text = (pages.PAGES / "run-under-a-launcher.md").read_text()
    program = tmp_path / "hello.py"
    program.write_text(re.search(r"```python\n# hello.py\n(.*?)```", text, re.DOTALL)[1])
    for size in (1, 3):
        ran = run(*RUN, str(size), str(program))
        assert lines(ran.stdout) == [f"hello from {rank} of {size}" for rank in range(size)], ran.stderr
    alone = run(sys.executable, str(program))
    assert alone.stdout == "hello from 0 of 1\n", alone.stderr


def test_the_page_of_launchers_shows_what_info_says(tmp_path: Path) -> None:
    script = shutil.which("ofipy", path=str(Path(sys.executable).parent))
    ran = run(*RUN, "1", *([script] if script else [sys.executable, "-m", "ofipy"]), "info", "--job")
    assert "ofipy run: rank 0 of 1" in ran.stdout
