# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that leave a job early: what the others hear of it, under each launcher, and when rank 0 is the first."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from started import launcher, run, run_each

from tests.ports import free_port

LEAVER = Path(__file__).with_name("leaver.py")
WORDS = {"left": "rank {} has left the job", "died": "rank {} of the job has died"}
# A pause for a peer that is not there yet would be longer than any test may take.
PATIENT = {"OFIPY_CONNECT_TIMEOUT": "300"}

pytestmark = [pytest.mark.usefixtures("shared_memory"), pytest.mark.timeout(120)]


def settings(leave: set[int], how: str, **more: str) -> dict[str, str]:
    return PATIENT | {"LEAVE": ",".join(map(str, sorted(leave))), "HOW": how} | more


def torchrun(rank: int, size: int, job: str) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "29520",
        "TORCHELASTIC_RUN_ID": job,
    }


def run_torchrun(size: int, environment: dict[str, str]) -> str:
    job = uuid.uuid4().hex
    ran = run_each([torchrun(rank, size, job) | environment for rank in range(size)], program=LEAVER)
    return check_status(ran, environment)


def check_status(ran: list[subprocess.CompletedProcess[str]], environment: dict[str, str]) -> str:
    leave = {int(rank) for rank in environment["LEAVE"].split(",")}
    for rank, each in enumerate(ran):
        assert rank in leave or each.returncode == 0, each.stderr
    return "".join(each.stdout for each in ran)


def check(output: str, size: int, leave: set[int], reason: str) -> None:
    """Each that stays has heard of each that left, and those who stay go on."""
    lines = [re.sub(r"^\[ ?\d+\] ", "", line) for line in output.splitlines()]
    stay = set(range(size)) - leave
    for rank in stay:
        for gone in leave:
            for what in ("before", "receive", "send"):
                (line,) = [line for line in lines if line.startswith(f"{rank} {what} {gone} ")]
                assert line.startswith(f"{rank} {what} {gone} {reason} after "), line
                assert line.endswith(WORDS[reason].format(gone)), line
        assert f"{rank} anyone False" in lines
        assert len(stay) == 1 or f"{rank} on on" in lines


@pytest.mark.parametrize(
    ("size", "leave"), [(2, {0}), (2, {1}), (3, {0}), (3, {0, 2}), (8, {0}), (8, {0, 1, 4, 7})]
)
def test_who_names_a_rank_that_has_left_hears_of_it(size: int, leave: set[int]) -> None:
    command = [sys.executable, "-m", "ofipy", "run", "-n", str(size), str(LEAVER)]
    ran = run(*command, environment=settings(leave, "ends"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    check(ran.stdout, size, leave, "left")


@pytest.mark.parametrize("threading", ["safe", "domain"])
@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
def test_all_that_it_sent_is_received_before(provider: str, threading: str) -> None:
    environment = settings({0, 2}, "sends", OFIPY_PROVIDER=provider, THREADING=threading)
    check(run_torchrun(4, environment), 4, {0, 2}, "left")


@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize(("how", "reason"), [("raises", "died"), ("kills", "died"), ("exits", "left")])
def test_how_it_ended(how: str, reason: str, provider: str) -> None:
    check(run_torchrun(3, settings({0}, how, OFIPY_PROVIDER=provider)), 3, {0}, reason)


def test_a_rank_that_dies_at_once_has_died() -> None:
    """Whoever has the peers of a job is known to its neighbours, however late its own thread ran."""
    environment = settings({0}, "kills", OFIPY_PROVIDER="tcp", SLOW="0.3")
    check(run_torchrun(3, environment), 3, {0}, "died")


def test_with_a_list_of_addresses() -> None:
    environment = settings({0}, "ends", ADDRESSES=f"localhost:{free_port()},localhost,localhost")
    ran = run_each([environment | {"NUMBER": str(rank)} for rank in range(3)], program=LEAVER)
    check(check_status(ran, environment), 3, {0}, "left")


def test_under_slurm_without_pmi() -> None:
    job = {"SLURM_NTASKS": "3", "SLURM_STEP_NODELIST": "localhost", "SLURM_JOB_ID": uuid.uuid4().hex}
    environment = settings({0}, "ends")
    ran = run_each([environment | job | {"SLURM_PROCID": str(rank)} for rank in range(3)], program=LEAVER)
    check(check_status(ran, environment), 3, {0}, "left")


@pytest.mark.parametrize(
    "command", [("mpiexec.hydra",), ("prterun", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE")]
)
def test_under_pmi(command: tuple[str, ...]) -> None:
    program = [launcher(command[0]), *command[1:], "-n", "3", sys.executable, str(LEAVER)]
    ran = run(*program, environment=settings({0}, "ends"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    check(ran.stdout, 3, {0}, "left")


def run_program(text: str, size: int, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(text)
    return run(sys.executable, "-m", "ofipy", "run", "-n", str(size), str(program), environment=PATIENT)


def test_the_end_of_a_forked_child_is_not_the_rank_s(tmp_path: Path) -> None:
    ran = run_program(
        "import os, sys, ofipy\n"
        "job = ofipy.job()\nep = ofipy.open()\npeers = job.peers(ep)\n"
        "if job.rank == 1:\n"
        "    child = os.fork()\n"
        "    if not child:\n        sys.exit(0)\n"  # as the interpreter ends, exit functions and all
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    ep.tsend(b'here', peers[0], tag=1).wait(timeout=30)\n"
        "else:\n"
        "    print(bytes(ep.trecv(peers[1], tag=1).wait(timeout=30).data))\n"
        "job.barrier()\n",
        2,
        tmp_path,
    )
    assert (ran.returncode, ran.stdout) == (0, "[0] b'here'\n"), ran.stderr


def test_closing_the_job_is_no_farewell(tmp_path: Path) -> None:
    ran = run_program(
        "import ofipy\n"
        "with ofipy.job() as job:\n    ep = ofipy.open()\n    peers = job.peers(ep)\n"
        "if job.rank == 0:\n"
        "    coming = ep.trecv(peers[1], tag=1)\n"
        "    ep.tsend(b'closed', peers[1], tag=1)\n"
        "    print(bytes(coming.wait(timeout=30).data))\n"
        "    try:\n        ep.trecv(peers[1], tag=1).wait(timeout=30)\n"
        "    except ofipy.PeerLost as error:\n        print(error.reason)\n"
        "else:\n"
        "    ep.trecv(peers[0], tag=1).wait(timeout=30)\n"
        "    ep.tsend(b'on', peers[0], tag=1).wait(timeout=30)\n",
        2,
        tmp_path,
    )
    assert (ran.returncode, ran.stdout) == (0, "[0] b'on'\n[0] left\n"), ran.stderr
