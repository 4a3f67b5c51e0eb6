# SPDX-License-Identifier: BSD-3-Clause
"""This release beside the last one, and beside a later one that speaks no version of this one.

OFIPY_UPGRADE_WIRES are other wires than those of every machine, with commas between them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

SIDE = Path(__file__).with_name("side.py")
PRESENT = Path(sys.executable)
KEY = "a key that both sides have"

# A lane of link is chosen for each pair: shared memory within this host.
WIRES = os.environ.get("OFIPY_UPGRADE_WIRES", "shm,tcp,tcp with a key,link").split(",")
# The last release may not encrypt yet.
LATER_WIRES = [*WIRES, *(f"{wire} and encryption" for wire in WIRES if wire == "tcp with a key")]
# Versions that a later release speaks over them, and this one.
VERSIONS = {"shm": ("4", "3"), "link": ("4", "3"), "tcp": ("2", "1"), "verbs": ("2", "1")}
ROLES = [False, True]

# Seconds that both sides have where they are told that no version is common. Nothing may wait for a time-out then,
# so they are far more than the one second in which both are to know. A side that needs them says TimedOut.
PATIENCE = 300

pytestmark = pytest.mark.timeout(900)


@contextmanager
def started(*commands: list[str], env: list[Mapping[str, str]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes, which end with the block."""
    processes = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, **each},
        )
        for command, each in zip(commands, env, strict=True)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    print(line, file=process.stdin, flush=True)


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def run_pair(server: Path, client: Path, wire: str, folder: Path, *, seconds: int = 60) -> list[str]:
    """The last lines of both sides, which wait so long for each step."""
    provider, _, key = wire.partition(" with a ")
    variables = {"OFIPY_TCP_INTERFACE": "lo", "OFIPY_CONNECT_TIMEOUT": str(seconds), "SECONDS": str(seconds)}
    if key:
        path = folder / "key"
        path.touch(mode=0o600)
        path.write_text(KEY)
        variables["OFIPY_AUTH_KEY_FILE"] = str(path)
    if key.endswith("encryption"):
        variables["OFIPY_ENCRYPTION"] = "required"
    commands = [
        [str(python), "-P", str(SIDE), role, provider]
        for python, role in ((server, "server"), (client, "client"))
    ]
    with started(*commands, env=[variables] * 2) as sides:
        addresses = [hear(side) for side in sides]
        for side, address in zip(sides, reversed(addresses), strict=True):
            say(side, address)
        for side in sides:
            assert hear(side) == "ready"
            # The server's receive is posted before the client calls.
            say(side, "")
        return [hear(side) for side in sides]


def run_job(first: Path, second: Path, port: int, folder: Path, *, seconds: int = 60) -> list[str]:
    """The last lines of both ranks."""
    path = folder / "job.key"
    path.touch(mode=0o600)
    path.write_text(KEY)
    common = {
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "OFIPY_AUTH_KEY_FILE": str(path),
        "OFIPY_JOB_TIMEOUT": str(seconds),
    }
    commands = [[str(python), "-P", str(SIDE), "rank"] for python in (first, second)]
    with started(*commands, env=[common | {"RANK": str(rank)} for rank in range(2)]) as ranks:
        return [hear(rank) for rank in ranks]


@pytest.mark.parametrize("swapped", ROLES, ids=["last serves", "present serves"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_last_release(wire: str, swapped: bool, last: Path, tmp_path: Path) -> None:
    pair = (PRESENT, last) if swapped else (last, PRESENT)
    assert run_pair(*pair, wire, tmp_path) == ["done", "done"]


@pytest.mark.parametrize("swapped", ROLES, ids=["last is rank 0", "present is rank 0"])
def test_a_job_with_the_last_release(swapped: bool, last: Path, tmp_path: Path) -> None:
    pair = (PRESENT, last) if swapped else (last, PRESENT)
    assert run_job(*pair, 29600 + 40 * swapped, tmp_path) == ["done", "done"]


def check_told(line: str, theirs: str, own: str, where: str) -> None:
    """That a side has raised the exception."""
    name, _, message = line.partition(" ")
    assert name == "IncompatiblePeer", line
    assert f"speaks version {theirs} of " in message
    assert f"this side version {own}" in message
    assert f"update ofipy on {where}" in message
    assert "another key" not in message


@pytest.mark.parametrize("swapped", ROLES, ids=["later serves", "present serves"])
@pytest.mark.parametrize("wire", LATER_WIRES)
def test_a_later_release_that_has_left_this_one_behind(
    wire: str, swapped: bool, later: Path, tmp_path: Path
) -> None:
    pair = (PRESENT, later) if swapped else (later, PRESENT)
    lines = run_pair(*pair, wire, tmp_path, seconds=PATIENCE)
    present, other = VERSIONS[wire.partition(" ")[0]]
    of_present, of_later = lines if swapped else lines[::-1]
    check_told(of_present, present, other, "this side")
    check_told(of_later, other, present, "the peer's side")


@pytest.mark.parametrize("swapped", ROLES, ids=["later is rank 0", "present is rank 0"])
def test_a_job_with_a_later_release(swapped: bool, later: Path, tmp_path: Path) -> None:
    """The wires below the rendezvous differ, so that the ranks hear of each other through the door of rank 0."""
    pair = (PRESENT, later) if swapped else (later, PRESENT)
    first, second = run_job(*pair, 29700 + 40 * swapped, tmp_path, seconds=PATIENCE)
    for line in (first, second):
        assert line.startswith("IncompatiblePeer "), line
        assert "another key" not in line
    assert re.search(
        r"rank 1 speaks version \d of .*, and rank 0 version \d; update ofipy where rank \d runs", first
    )
    assert re.search(r"the peer speaks version \d of .*, and this side version \d.*update ofipy on", second)
