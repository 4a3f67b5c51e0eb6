# SPDX-License-Identifier: BSD-3-Clause
"""A job on two hosts: the program of tests/jobs, unchanged, over shared memory and tcp; keys, and what lacks one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import Network, Wire

PROGRAM = Path(__file__).parents[1] / "jobs" / "program.py"
SECONDS = 60


@pytest.fixture
def two(network: Network) -> list[Wire]:
    """Two hosts on one network."""
    return [network.wire(network.host()) for _ in range(2)]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(32))
    return path


def stand_in(folder: Path, wires: list[Wire]) -> str:
    """What ssh does between hosts: a shell on the other one."""
    script = folder / "ssh"
    cases = "".join(f"{wire.v4}) set -- {' '.join(wire.host.inside())} ;;\n" for wire in wires)
    script.write_text(
        f'#!/bin/sh\nhost=$1\nshift\nwhat=$*\ncase $host in\n{cases}esac\nexec "$@" sh -c "$what"\n'
    )
    script.chmod(0o755)
    return str(script)


def hosts_of(wires: list[Wire]) -> str:
    return ",".join(f"{wire.v4}:2" for wire in wires)


def start(wires: list[Wire], program: str, **of_both: str) -> list[subprocess.Popen[str]]:
    """Two processes on each host, as torchrun sets their variables."""
    return [
        subprocess.Popen(
            wires[rank // 2].host.inside(sys.executable, "-P", *program.split()),
            env=os.environ
            | {"RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": str(rank % 2), "LOCAL_WORLD_SIZE": "2"}
            | {"MASTER_ADDR": wires[0].v4, "MASTER_PORT": "29500"}
            | of_both,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(4)
    ]


def finish(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    try:
        return [
            (process.returncode, *output)
            for process in processes
            for output in [process.communicate(timeout=SECONDS)]
        ]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_ofipy_run_on_two_hosts(two: list[Wire], tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "ofipy", "run", "--hosts", hosts_of(two)]
    ran = subprocess.run(
        [*command, "--ssh", stand_in(tmp_path, two), str(PROGRAM), "4", "ofipy run"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for rank in range(4):
        assert f"rank {rank} of 4, {rank % 2} of 2 here, over shm+tcp" in ran.stdout


def test_the_variables_of_torchrun_and_a_key(two: list[Wire], key: Path) -> None:
    for rank, (code, output, errors) in enumerate(
        finish(start(two, f"{PROGRAM} 4 torchrun", OFIPY_AUTH_KEY_FILE=str(key)))
    ):
        assert code == 0, errors
        assert f"rank {rank} of 4, {rank % 2} of 2 here, over shm+tcp" in output


def test_without_a_key_several_hosts_are_refused(two: list[Wire]) -> None:
    for code, _output, errors in finish(start(two, str(PROGRAM))):
        assert code == 1
        assert "no key (torchrun)" in errors
        assert "ofipy key new" in errors


def test_another_key_is_named(two: list[Wire], key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch(mode=0o600)
    other.write_bytes(os.urandom(32))
    alone = start(two, str(PROGRAM), OFIPY_AUTH_KEY_FILE=str(key), OFIPY_JOB_TIMEOUT="4")
    wrong = start(two, str(PROGRAM), OFIPY_AUTH_KEY_FILE=str(other), OFIPY_JOB_TIMEOUT="4")
    for process in (*alone[2:], *wrong[:2]):
        process.kill()
    results = finish([*alone[:2], *wrong[2:]])
    finish([*alone[2:], *wrong[:2]])
    for code, _output, errors in results[2:]:
        assert code == 1
        assert "OFIPY_AUTH_KEY_FILE" in errors
    for code, _output, errors in results[:2]:
        assert code == 1
        assert "rank 2, 3 did not come" in errors


@pytest.mark.parametrize("provider", ["link", "tcp"])
def test_an_endpoint_opened_before_the_job_says_so_on_every_rank(
    provider: str, two: list[Wire], tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, ofipy\n"
        f"early = ofipy.open(provider={provider!r}) if os.environ['OFIPY_JOB_RANK'] == '2' else None\n"
        "job = ofipy.job()\n"
        f"try:\n    job.peers(early or ofipy.open(provider={provider!r}))\n"
        "except ofipy.Unreachable as error:\n    print(error)\n"
    )
    command = [sys.executable, "-P", "-m", "ofipy", "run", "--hosts", hosts_of(two)]
    ran = subprocess.run(
        [*command, "--ssh", stand_in(tmp_path, two), str(program)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("endpoint of rank 2 was opened before the job was joined") == 4
    assert "call ofipy.job() before ofipy.open()" in ran.stdout
