# SPDX-License-Identifier: BSD-3-Clause
"""``--local``: the server in a process of its own, on a core of its own, and this process its client."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import click

from fabtests.base.options import Options
from fabtests.base.program import Failed, NotRun
from fabtests.base.session import READY
from ofipy.pingpong.pipe import pick_cores

__all__ = ["serve_here"]

STOP_SECONDS = 5.0


@contextlib.contextmanager
def serve_here(options: Options) -> Iterator[None]:
    """Start the other side where ``--local`` asks for it, and turn this one into its client."""
    if not options.local:
        yield
        return
    cores = choose_cores(options.pin_core)
    arguments = [each for each in sys.argv[1:] if each != "--local"]
    command = [
        sys.executable,
        "-m",
        "fabtests",
        *arguments,
        "--announce",
        "--pin-core",
        str(cores[1]),
        "-B",
        "0",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline().split()
        if line[:2] != READY.split():
            raise _explain(server)
        options.host, options.pin_core = line[2], str(cores[0])
        options.oob_port = int(line[3])
        options.oob_sync = options.oob_sync and options.oob_port
        options.oob_address = options.oob_address and options.oob_port
        yield
        _, said = server.communicate(timeout=STOP_SECONDS)
        if server.returncode:
            raise Failed(f"the server ended with {server.returncode}: {said.strip()}")
    finally:
        server.kill()
        server.communicate()


def _explain(server: "subprocess.Popen[str]") -> Exception:
    """Why a server did not come up: its own words."""
    _, said = server.communicate()
    words = said.strip().partition(": ")[2] or said.strip()
    if server.returncode in (61, 38):
        return NotRun(words, code=server.returncode)
    return Failed(words or f"the server ended with {server.returncode}")


def choose_cores(first: str | None) -> tuple[int, int]:
    """The core asked for and the one after it among those allowed."""
    if first is None:
        return pick_cores()
    allowed = sorted(os.sched_getaffinity(0))
    if not first.isdigit() or int(first) not in allowed:
        raise click.UsageError(f"core {first} is not among those this process may use: {allowed}")
    return int(first), allowed[(allowed.index(int(first)) + 1) % len(allowed)]
