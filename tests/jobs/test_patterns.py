# SPDX-License-Identifier: BSD-3-Clause
"""The patterns beside the same programs over mpi4py and pyzmq: as short, with the same result, and typed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pages
import pytest
from started import launcher, run

# Lines of ours to one of theirs, at most.
MPI = 1.3
ZMQ = 1.0


@pytest.mark.parametrize(
    ("name", "rivals", "most"),
    [
        ("ring-all-reduce", ["ring_mpi4py"], MPI),
        ("scatter-and-gather", ["scatter_mpi4py"], MPI),
        ("halo-exchange", ["halo_mpi4py"], MPI),
        ("work-queue", ["queue_pyzmq"], ZMQ),
        ("request-and-reply", ["request_server_pyzmq", "request_client_pyzmq"], ZMQ),
    ],
)
def test_as_short_as_over_others(name: str, rivals: list[str], most: float) -> None:
    ours = pages.count(*pages.read(name).programs.values())
    theirs = pages.count(*((pages.RIVALS / f"{rival}.py").read_text() for rival in rivals))
    assert ours <= most * theirs, f"{ours} lines, {theirs} over others"
    row = rf"\({name}\.md\) .*\| {ours} \| .*: {theirs} \|"
    page = (pages.PAGES / "patterns.md").read_text()
    assert any(re.search(row, line) for line in page.splitlines()), f"the table lacks {ours}, {theirs}"


@pytest.mark.parametrize("name", [*pages.JOBS, *pages.PAIRS])
def test_typed(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    for file, program in pages.read(name).programs.items():
        (tmp_path / file).write_text(program)
        ran = run(sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(tmp_path / file))
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", ["ring-all-reduce", "scatter-and-gather", "halo-exchange"])
def test_mpi4py_says_the_same(name: str) -> None:
    if importlib.util.find_spec("mpi4py") is None:  # looked for only: importing it starts MPI
        pytest.skip("mpi4py is not installed")
    rival = pages.RIVALS / f"{name.split('-')[0]}_mpi4py.py"
    ran = run(launcher("mpiexec.hydra"), "-n", "4", sys.executable, str(rival))
    assert ran.stdout == pages.read(name).output, ran.stderr


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def rival(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(pages.RIVALS / f"{name}.py"), *arguments]


def test_pyzmq_says_the_same_of_a_queue(tmp_path: Path) -> None:
    pytest.importorskip("zmq")
    address = f"ipc://{tmp_path / 'queue'}"
    with (
        started(*rival("queue_pyzmq", address, "0", "3")) as server,
        started(*rival("queue_pyzmq", address, "1", "3")),
        started(*rival("queue_pyzmq", address, "2", "3")),
    ):
        said, _ = server.communicate(timeout=60)
    assert f"[0] {said}" == pages.read("work-queue").output


def test_pyzmq_says_the_same_of_requests(tmp_path: Path) -> None:
    pytest.importorskip("zmq")
    address = f"ipc://{tmp_path / 'requests'}"
    with started(*rival("request_server_pyzmq", address)):
        ran = run(*rival("request_client_pyzmq", address))
    assert f"client: {ran.stdout}" == pages.read("request-and-reply").output
