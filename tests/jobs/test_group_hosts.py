# SPDX-License-Identifier: BSD-3-Clause
"""Groups over several hosts, which the processes of this one claim to be; and of many processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from started import run

HOSTS = """
import os
import sys

hosts = [int(host) for host in sys.argv[1].split(",")]
rank = int(os.environ["OFIPY_JOB_RANK"])
os.environ["OFIPY_HOST_ID"] = f"{hosts[rank] + 1:016x}"
os.environ["OFIPY_INTERFACE"] = "lo"

import numpy as np

import ofipy

job = ofipy.job()
assert job.rank == rank
group = job.group(ofipy.open(provider="link"))
for length in (1, 3_000, 400_000):
    for kind in ("allreduce", "scan"):
        a = np.full(length, rank + 1, np.int64)
        getattr(group, kind)(a).wait(timeout=60)
        assert (a == sum(range(1, (group.size if kind == "allreduce" else rank + 1) + 1))).all()
    blocks = np.zeros((group.size, length), np.int64)
    group.allgather(np.full(length, rank), blocks).wait(timeout=60)
    assert (blocks == np.arange(group.size)[:, None]).all()
    given = np.arange(group.size * length).reshape(group.size, length) + rank
    group.alltoall(given, blocks).wait(timeout=60)
    assert (blocks == rank * length + np.arange(length) + np.arange(group.size)[:, None]).all()
here = group.split("host").wait(timeout=60)
assert here.size == hosts.count(hosts[rank])
assert here.allreduce(np.array([rank])).wait(timeout=60)[0] == sum(
    other for other, host in enumerate(hosts) if host == hosts[rank]
)
for other, peer in enumerate(group.peers):
    if other != rank:
        way = group.endpoint.way(peer)
        assert way == ("shm" if hosts[other] == hosts[rank] else "tcp"), (rank, other, way)
group.barrier().wait(timeout=60)
if rank == 0:
    print("right")
"""

MANY = """
import numpy as np

import ofipy

group = ofipy.job().group()
ranks = np.arange(group.size)
for number in range(20):
    a = np.full(1 + 997 * number, group.rank, np.int64)
    group.allreduce(a).wait(timeout=120)
    assert (a == ranks.sum()).all()
    got = np.zeros(group.size, np.int64)
    group.alltoall(ranks * 1000 + group.rank, got).wait(timeout=120)
    assert (got == group.rank * 1000 + ranks).all()
    group.barrier().wait(timeout=120)
if group.rank == 0:
    print("right")
group.close()
"""


def run_job(size: int, program: Path, *arguments: str) -> None:
    ran = run(
        sys.executable,
        "-m",
        "ofipy",
        "run",
        "-n",
        str(size),
        sys.executable,
        str(program),
        *arguments,
        seconds=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-1:] == ["right"], ran.stdout


@pytest.mark.parametrize("hosts", ["0,0,1,1", "0,0,0,1", "0,1,0"])
def test_two_hosts(hosts: str, tmp_path: Path) -> None:
    (tmp_path / "hosts.py").write_text(HOSTS)
    run_job(hosts.count(",") + 1, tmp_path / "hosts.py", hosts)


@pytest.mark.timeout(320)
def test_64_processes(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    run_job(64, tmp_path / "many.py")
