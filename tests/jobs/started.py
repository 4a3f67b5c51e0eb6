# SPDX-License-Identifier: BSD-3-Clause
"""Starting processes as launchers do."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("program.py")
SECONDS = 60


def launcher(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"the launcher {name} is not here")
    return found


def run(
    *command: str, environment: dict[str, str] | None = None, seconds: float = SECONDS
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=seconds
    )


def run_each(
    environments: list[dict[str, str]], *arguments: str, program: Path = PROGRAM
) -> list[subprocess.CompletedProcess[str]]:
    """One process for each environment, at the same time, as a launcher without a server starts them."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for environment in environments
    ]
    try:
        outputs = [process.communicate(timeout=SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [
        subprocess.CompletedProcess(process.args, process.returncode, *output)
        for process, output in zip(processes, outputs, strict=True)
    ]


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_until_ended(process: int | str, seconds: float = SECONDS) -> None:
    """Wait for the end of a process that need not be a child. Killed processes may take a while to end."""
    try:
        descriptor = os.pidfd_open(int(process))
    except ProcessLookupError:
        return
    try:
        ended, _, _ = select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
    assert ended, f"process {process} runs {seconds} s later"


def is_running(process: int | str) -> bool:
    """Whether there is such a process; one that nobody has waited for yet is none."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
