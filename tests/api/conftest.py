# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the Python interface as a hostile program uses it; ``--provider`` as of the conformance suite.

What is tested runs in a process of its own, so that a crash is a failure and no end. ``python -m tests.asan -m pytest
tests/api`` runs it all over a build with sanitizers.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--provider",
        action="append",
        default=[],
        metavar="NAME",
        help="provider to test; may be repeated (default: shm, tcp and fake, as far as they are installed)",
    )


@pytest.fixture
def run() -> Run:
    """Runs a program of this folder to its end, and says what it printed; fails with all of it otherwise."""

    def run(program: str, *arguments: object, timeout: float) -> str:
        here = Path(__file__).parent
        command = [sys.executable, "-X", "faulthandler", str(here / program), *map(str, arguments)]
        # What these programs leave behind is to be dropped at once.
        environment = {"OFIPY_TCP_INTERFACE": "lo", "OFIPY_LINGER": "0"} | os.environ
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            try:
                output, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGABRT)  # its faulthandler says where it is
                output = f"{process.communicate()[0]}\nnot finished within {timeout:g} s"
        shown = " ".join(map(str, [program, *arguments]))
        assert process.returncode == 0, f"{shown} ended with {process.returncode}:\n{output}"
        return output

    return run
