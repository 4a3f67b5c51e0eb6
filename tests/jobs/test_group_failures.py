# SPDX-License-Identifier: BSD-3-Clause
"""Groups of processes whose members die: those that are left agree, shrink, and continue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SURVIVORS = Path(__file__).with_name("survivors.py")
SECONDS = 300

ABORTED = """
import numpy as np

import ofipy

group = ofipy.job().group()
if group.rank == 1:
    group.abort("no more \\u00e9nergie")
try:
    while True:
        group.barrier().wait(timeout=60)
except ofipy.GroupBroken as error:
    assert error.abort_reason == "no more \\u00e9nergie" and error.ranks == (), error
    assert "rank 1 aborted the group: no more" in str(error)
assert group.agree(True).wait(timeout=60) == (True, ())
again = group.shrink().wait(timeout=60)
group.close()
assert (again.rank, again.size) == (ofipy.job().rank, 3)
try:
    if again.rank == 1:
        again.barrier().wait(timeout=60)
    else:
        again.allreduce(np.ones(1)).wait(timeout=60)
    while True:
        again.barrier().wait(timeout=60)
except ofipy.CollectiveMismatch:
    pass
third = again.shrink().wait(timeout=60)
again.close()
assert third.allreduce(np.full(1, third.rank)).wait(timeout=60) == 3
third.close()
print("done")
"""


def run_job(provider: str, size: int, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*(sys.executable, "-m", "ofipy", "run", "--keep-going", "-n", str(size)), sys.executable, *command],
        env=os.environ | {"OFIPY_PROVIDER": provider},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize(
    "kinds",
    [
        "barrier,broadcast,agree,reduce,allreduce,gather",
        "scatter,allgather,alltoall,agree,reduce_scatter,scan",
        "agree,exscan,broadcast_obj",
    ],
)
def test_survivors_continue(provider: str, kinds: str) -> None:
    dying = len(kinds.split(","))
    ran = run_job(provider, dying + 2, str(SURVIVORS), kinds)
    assert sorted(line.partition("] ")[2] for line in ran.stdout.splitlines()) == ["left: 2"] * 2, ran.stderr
    assert ran.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_a_group_continues_after_an_abort_and_a_mismatch(provider: str, tmp_path: Path) -> None:
    program = tmp_path / "aborted.py"
    program.write_text(ABORTED)
    ran = run_job(provider, 3, str(program))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("done") == 3
