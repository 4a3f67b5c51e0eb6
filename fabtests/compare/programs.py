# SPDX-License-Identifier: BSD-3-Clause
"""Peers that are C programs: a server and a client, both started for every round."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ofipy.pingpong.leftovers import remove_leftovers

__all__ = ["START_SECONDS", "ProgramError", "free_port", "run_both"]

START_SECONDS = 10.0
RUN_SECONDS = 60.0
STATE_LISTEN = "0A"  # in /proc/net/tcp


class ProgramError(Exception):
    """A program failed, or printed what cannot be read."""

    exit_code = 1


def run_both(server: Sequence[str], client: Sequence[str], *, port: int, cores: tuple[int, int]) -> str:
    """Run both sides once.

    Parameters
    ----------
    server, client : sequence of str
        The commands.
    port : int
        Where the server will listen; then the client is started.
    cores : tuple of int
        Core of the client and of the server.

    Returns
    -------
    str
        What the client printed.

    Raises
    ------
    ProgramError
        When either side fails.
    """
    name = client[0]
    with started(server, cores[1]) as there:
        wait_listening(there, port)
        with started(client, cores[0]) as here:
            try:
                output, errors = here.communicate(timeout=RUN_SECONDS)
            except subprocess.TimeoutExpired:
                raise ProgramError(f"{name} did not finish within {RUN_SECONDS:g} s") from None
            if here.returncode != 0:
                raise ProgramError(f"{name} ended with code {here.returncode}: {errors.strip()}")
            return output


@contextlib.contextmanager
def started(command: Sequence[str], core: int) -> Iterator[subprocess.Popen[str]]:
    """Run a program on one core; it does not outlive the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # inherited by the child
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.sched_setaffinity(0, before)
    try:
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    try:
                        process.wait(1.0)
                    except subprocess.TimeoutExpired:
                        process.kill()
    finally:
        remove_leftovers([process.pid])


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def wait_listening(server: subprocess.Popen[str], port: int) -> None:
    """Return once the server listens.

    The kernel's table is asked, since a trial connection would be taken for the client.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            assert server.stderr is not None
            raise ProgramError(
                f"the server ended with code {server.returncode}: {server.stderr.read().strip()}"
            )
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if state == STATE_LISTEN and int(local.rpartition(":")[2], 16) == port:
                    return
        time.sleep(0.005)
    raise ProgramError(f"the server does not listen on port {port}")
