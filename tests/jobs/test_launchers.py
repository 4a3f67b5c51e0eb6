# SPDX-License-Identifier: BSD-3-Clause
"""The same program, unchanged, under every launcher; and what becomes of a job when a process dies."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from started import PROGRAM, launcher, run, run_each, wait_until_ended

from tests.ports import free_port

pytestmark = [pytest.mark.usefixtures("shared_memory"), pytest.mark.timeout(120)]


def check(ran: subprocess.CompletedProcess[str], size: int) -> None:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for rank in range(size):
        assert f"rank {rank} of {size}, {rank} of {size} here, over shm" in ran.stdout


def test_mpiexec() -> None:
    check(run(launcher("mpiexec.hydra"), "-n", "4", sys.executable, str(PROGRAM), "4", "PMI-1"), 4)


def test_mpiexec_with_a_port() -> None:
    ran = run(launcher("mpiexec.hydra"), "-pmi-port", "-n", "3", sys.executable, str(PROGRAM), "3", "PMI-1")
    check(ran, 3)


def test_prterun() -> None:
    command = [launcher("prterun"), "-n", "4", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"]
    check(run(*command, sys.executable, str(PROGRAM), "4", "PMIx"), 4)


def test_ofipy_run() -> None:
    check(run(sys.executable, "-m", "ofipy", "run", "-n", "8", str(PROGRAM), "8", "ofipy run"), 8)


def torchrun(rank: int, size: int, **more: str) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": uuid.uuid4().hex,
        **more,
    }


def check_each(results: list[subprocess.CompletedProcess[str]]) -> None:
    for rank, ran in enumerate(results):
        check_one(ran, rank, len(results))


def check_one(ran: subprocess.CompletedProcess[str], rank: int, size: int) -> None:
    assert ran.returncode == 0, ran.stderr
    assert f"rank {rank} of {size}, {rank} of {size} here, over shm" in ran.stdout


@pytest.mark.parametrize("with_key", [False, True])
def test_torchrun(with_key: bool, tmp_path: Path) -> None:
    more = {"TORCHELASTIC_RUN_ID": uuid.uuid4().hex}
    if with_key:
        key = tmp_path / "key"
        key.touch(mode=0o600)
        key.write_bytes(b"k" * 32)
        more["OFIPY_AUTH_KEY_FILE"] = str(key)
    check_each(run_each([torchrun(rank, 4, **more) for rank in range(4)], "4", "torchrun"))


def test_two_jobs_at_once_find_their_own_server() -> None:
    runs = [uuid.uuid4().hex for _ in range(2)]
    each = [torchrun(rank, 2, TORCHELASTIC_RUN_ID=run) for rank in range(2) for run in runs]
    for number, ran in enumerate(run_each(each, "2", "torchrun")):
        check_one(ran, number // 2, 2)


def test_slurm_without_pmi() -> None:
    same = {"SLURM_NTASKS": "3", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": uuid.uuid4().hex}
    check_each(run_each([same | {"SLURM_PROCID": str(rank)} for rank in range(3)], "3", "Slurm"))


def test_a_file_of_addresses(tmp_path: Path) -> None:
    listed = tmp_path / "hosts"
    listed.write_text(f"localhost:{free_port()} # where rank 0 serves\n\nlocalhost\nlocalhost\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import os, ofipy\n"
        f"job = ofipy.job(addresses={str(listed)!r}, rank=int(os.environ['NUMBER']))\n"
        "assert job.launcher == 'addresses'\n"
        "print(job.exchange(bytes([job.rank])))\n"
    )
    for ran in run_each([{"NUMBER": str(rank)} for rank in range(3)], program=program):
        assert ran.stdout == "[b'\\x00', b'\\x01', b'\\x02']\n", ran.stderr


def test_mpi4py(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="could not import 'mpi4py'")
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\nimport ofipy\n"
        "try:\n    ofipy.job()\nexcept ofipy.ConfigError as error:\n    assert 'comm=' in str(error)\n"
        "job = ofipy.job(comm=MPI.COMM_WORLD)\n"
        "assert job.launcher == 'mpi4py'\n"
        "import sys\n"
        "numbers = [int(peer) for peer in job.peers(ofipy.open())]\n"
        "sys.stdout.write(f'{job.rank} {numbers}\\n')\n"  # at once: launchers mix what comes in pieces
    )
    mpiexec = launcher("mpiexec.hydra")
    (library,) = Path(mpiexec).resolve().parents[1].glob("lib/**/libmpi.so.12")
    ran = run(mpiexec, "-n", "3", sys.executable, str(program), environment={"MPI4PY_LIBMPI": str(library)})
    assert sorted(ran.stdout.splitlines()) == [f"{rank} [0, 1, 2]" for rank in range(3)], ran.stderr


ENDS = {"kills": "os.kill(os.getpid(), signal.SIGKILL)", "raises": "raise RuntimeError"}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "command", [("mpiexec.hydra",), ("prterun", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE")]
)
def test_a_process_that_dies_ends_the_job_as_the_launcher_does(
    command: tuple[str, ...], end: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, pathlib, signal, sys, time, ofipy\njob = ofipy.job()\n"
        "pathlib.Path(__file__).with_name(f'{job.rank}.pid').write_text(str(os.getpid()))\njob.barrier()\n"
        f"if job.rank == 1:\n    {ENDS[end]}\ntime.sleep(1000)\n"
    )
    ran = run(launcher(command[0]), *command[1:], "-n", "3", sys.executable, str(program))
    assert ran.returncode != 0
    processes = [file.read_text() for file in tmp_path.glob("*.pid")]
    assert len(processes) == 3
    # A launcher may return before the processes that it has killed have ended.
    for process in processes:
        wait_until_ended(process)
