# SPDX-License-Identifier: BSD-3-Clause
"""Groups of the processes of a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from started import run

from tests.ports import free_port

STRESS = os.environ.get("OFIPY_STRESS") == "1"

PLAIN = """
import numpy as np

import ofipy

group = ofipy.job().group()
parts = group.split(group.rank % 2).wait(timeout=60)
mine = np.full(20_000, group.rank, np.int64)
whole, part = group.allreduce(mine.copy()), parts.allreduce(mine.copy())
ranks = range(group.size)
assert (whole.wait(timeout=60) == sum(ranks)).all()
assert (part.wait(timeout=60) == sum(rank for rank in ranks if rank % 2 == group.rank % 2)).all()
names = group.gather_obj(f"rank {group.rank}").wait(timeout=60)
group.barrier().wait(timeout=60)
if names is not None:
    print(len(names), names[-1])
group.close()
"""

DEATH = """
import os
import signal
import sys

import numpy as np

import ofipy

rank, listed, provider = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]
job = ofipy.job(addresses=listed, rank=rank)
group = job.group(ofipy.open(provider=provider))
a = np.ones(1000)
group.allreduce(a).wait(timeout=60)
try:
    for number in range(10_000):
        if number == 50 and rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        group.allreduce(a[: 1 + number % 1000], op="max").wait(timeout=60)
except ofipy.GroupBroken as error:
    print("broken", error.ranks, flush=True)
    sys.stdin.read()  # a rank that ends is gone, too
"""


AHEAD = """
import resource
import sys
import time

import numpy as np

import ofipy

count, seconds = int(sys.argv[1]), float(sys.argv[2])
group = ofipy.job().group()
a = np.zeros(512, np.int64)
for _ in range(200):
    group.broadcast(a).wait()
group.barrier().wait()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if group.rank == 1:
    time.sleep(seconds)
for number in range(count):
    if group.rank == 0:
        a[:] = number
    group.broadcast(a).wait()
    assert a[0] == a[-1] == number
group.barrier().wait()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert grown < 16 << 10, f"{grown} KiB for calls that are ahead"
group.close()
"""


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_a_root_stays_near_a_member_that_sleeps(provider: str, tmp_path: Path) -> None:
    count, seconds = (1_000_000, 5) if STRESS else (20_000, 1)
    program = tmp_path / "ahead.py"
    program.write_text(AHEAD)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "ofipy", "run", "-n", "2"),
            sys.executable,
            str(program),
            str(count),
            str(seconds),
        ],
        env=os.environ | {"OFIPY_PROVIDER": provider},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("size", [1, 4, 9])
def test_all_processes_of_a_job(size: int, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    ran = run(
        sys.executable, "-m", "ofipy", "run", "-n", str(size), sys.executable, str(tmp_path / "plain.py")
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(f"{size} rank {size - 1}\n")


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_a_killed_rank_is_named_at_all_others(provider: str, tmp_path: Path) -> None:
    size = 5
    listed = ",".join([f"127.0.0.1:{free_port()}", *["127.0.0.1"] * (size - 1)])
    program = tmp_path / "death.py"
    program.write_text(DEATH)
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), listed, provider],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        lines = [process.stdout.readline() for process in processes if process.stdout is not None]
        outputs = [process.communicate(timeout=60)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert processes[2].returncode == -signal.SIGKILL
    assert lines == [*["broken (2,)\n"] * 2, "", *["broken (2,)\n"] * 2]
    assert outputs == [""] * size


def test_a_job_keeps_going_without_a_rank(tmp_path: Path) -> None:
    program = tmp_path / "death.py"
    program.write_text(
        DEATH.replace('rank, listed, provider = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]\n', "")
        .replace("ofipy.job(addresses=listed, rank=rank)", "ofipy.job()\nrank = job.rank")
        .replace("job.group(ofipy.open(provider=provider))", "job.group()")
        .replace('print("broken", error.ranks', 'print("broken", 2 in error.ranks')
    )
    command = (sys.executable, "-m", "ofipy", "run", "--keep-going", "-n", "4", sys.executable, str(program))
    ran = run(*command)
    assert sorted(ran.stdout.splitlines()) == [f"[{rank}] broken True" for rank in (0, 1, 3)], ran.stderr
    assert ran.returncode == 128 + signal.SIGKILL
    assert "rank 2 was ended by SIGKILL" in ran.stderr
