# SPDX-License-Identifier: BSD-3-Clause
"""Two sides of a program, each with options of its own."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

Process = subprocess.Popen[str]


def with_port(options: str, port: str) -> list[str]:
    """Options, with the port of the TCP connection beside the fabric."""
    return [f"{each}={port}" if each in ("-b", "-E") else each for each in options.split()]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[..., tuple[Process, Process]]]:
    """Start a server and its client; what still runs in the end is killed. ``-b`` and ``-E`` meet at any port."""
    with ExitStack() as stack:

        def start(*arguments: str) -> Process:
            command = [sys.executable, "-P", "-W", "error::DeprecationWarning", "-m", "fabtests", *arguments]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        def start_both(program: str, provider: str, server: str, client: str) -> tuple[Process, Process]:
            common = [program, "-p", provider, "-s", "127.0.0.1"]
            serving = start(*common, "--announce", "-B", "0", *with_port(server, "0"))
            assert serving.stdout is not None
            for line in serving.stdout:
                if line.startswith("fabtests ready"):
                    _, _, where, beside = line.split()
                    return serving, start(*common, "--oob-port", beside, *with_port(client, beside), where)
            raise AssertionError("the server has ended")

        yield start_both
