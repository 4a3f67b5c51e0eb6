# SPDX-License-Identifier: BSD-3-Clause
"""``python -m ofipy.executor`` under the launchers that ofipy.jobs knows."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from started import launcher, run, run_each

pytestmark = [pytest.mark.usefixtures("shared_memory"), pytest.mark.timeout(120)]

SCRIPT = Path(__file__).with_name("executor_script.py")
SERVE = (sys.executable, "-m", "ofipy.executor")
PROGRAM = (*SERVE, str(SCRIPT))
RUN = (sys.executable, "-m", "ofipy", "run")


def check(ran: subprocess.CompletedProcess[str], *said: str) -> None:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " ".join(("all done", *said)) in ran.stdout


def test_ofipy_run() -> None:
    ran = run(*RUN, "-n", "4", *PROGRAM, "3", "--and", "arguments")
    check(ran, "--and", "arguments")
    assert ran.stdout.count("all done") == 1
    assert 1 <= ran.stdout.count("begun here") <= 3


def test_mpiexec() -> None:
    check(run(launcher("mpiexec.hydra"), "-n", "3", *PROGRAM, "2"))


def test_prterun() -> None:
    command = [launcher("prterun"), "-n", "3", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"]
    check(run(*command, *PROGRAM, "2"))


def variables(launcher: str, rank: int, size: int, run: str) -> dict[str, str]:
    if launcher == "Slurm":
        return {
            "SLURM_PROCID": str(rank),
            "SLURM_NTASKS": str(size),
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_JOB_ID": run,
        }
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": run,
    }


@pytest.mark.parametrize("name", ["torchrun", "Slurm"])
def test_by_variables(name: str, tmp_path: Path) -> None:
    program = tmp_path / "start.py"
    program.write_text(f"import os\nos.execv({SERVE[0]!r}, {[*PROGRAM, '2']!r})\n")
    run = uuid.uuid4().hex
    first, *others = run_each([variables(name, rank, 3, run) for rank in range(3)], program=program)
    check(first)
    for other in others:
        assert other.returncode == 0, other.stderr


def test_one_rank_starts_workers_itself() -> None:
    """As without any launcher."""
    cores = str(len(os.sched_getaffinity(0)))
    check(run(*RUN, "-n", "1", *PROGRAM, cores))
    check(run(*PROGRAM, cores))
    check(run(sys.executable, str(SCRIPT), cores))


def test_a_module(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tasks.py").write_text(SCRIPT.read_text())
    environment = {"PYTHONPATH": str(tmp_path)}
    check(run(*RUN, "-n", "3", *SERVE, "-m", "package.tasks", "2", environment=environment))
    check(run(*SERVE, "-m", "package.tasks", str(len(os.sched_getaffinity(0))), environment=environment))


def test_a_script_that_submits_nothing_and_ends_at_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('nothing')\n")
    ran = run(*RUN, "-n", "3", *SERVE, str(script))
    assert ran.returncode == 0, ran.stderr
    assert "[0] nothing" in ran.stdout


@pytest.mark.parametrize(("end", "status"), [("raise SystemExit(5)", 5), ("raise LookupError('no')", 1)])
def test_the_exit_status_is_that_of_the_script(tmp_path: Path, end: str, status: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"if __name__ == '__main__':\n    {end}\n")
    assert run(*RUN, "-n", "3", *SERVE, str(script)).returncode == status


def test_a_script_that_workers_cannot_load_ends_the_job(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import ofipy\nofipy.Executor().submit(print).result()\n")
    ran = run(*RUN, "-n", "3", *SERVE, str(script))
    assert ran.returncode != 0
    assert 'if __name__ == "__main__":' in ran.stderr


def test_an_executor_in_a_job_that_does_not_serve(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import ofipy\nofipy.Executor()\n")
    ran = run(*RUN, "-n", "2", str(script))
    assert ran.returncode == 1
    assert "python -m ofipy.executor script.py" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "usage:"),
        (("-x",), 2, "usage:"),
        (("absent.py",), 2, "no such script"),
        (("-h",), 0, "usage:"),
    ],
)
def test_its_command_line(arguments: tuple[str, ...], status: int, said: str) -> None:
    ran = run(*SERVE, *arguments)
    assert ran.returncode == status
    assert said in ran.stdout + ran.stderr
