# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own C programs, the peer where the bridge finds no library but they are on the PATH.

Both sides are started for every round.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from fabtests.compare.contender import Times
from fabtests.compare.entrants import Absent
from ofipy.pingpong.leftovers import remove_leftovers

__all__ = ["BANDWIDTH", "PINGPONG", "LibfabricError", "Programs", "library_version", "run_program"]

PINGPONG = "fi_rdm_tagged_pingpong"
BANDWIDTH = "fi_rdm_tagged_bw"
LEAST_ITERATIONS = 20000
LEAST_WINDOWS = 32
START_SECONDS = 10.0
RUN_SECONDS = 60.0
STATE_LISTEN = "0A"  # in /proc/net/tcp


class LibfabricError(Exception):
    """The C program failed, or printed what cannot be read."""

    exit_code = 1


class Programs:
    """Answers the calls of a :class:`~fabtests.compare.bench.Bench` by running a program.

    Parameters
    ----------
    provider : str
        libfabric's name of the provider.
    cores : tuple of int
        Core of the client and of the server.
    """

    def __init__(self, provider: str, *, cores: tuple[int, int]) -> None:
        self._provider = provider
        self._cores = cores

    @classmethod
    def found(cls, provider: str, *, cores: tuple[int, int], otherwise: str) -> Self:
        """The programs on the PATH.

        Raises
        ------
        Absent
            When they are not there, with what `otherwise` says about the library.
        """
        if shutil.which(PINGPONG) is None or shutil.which(BANDWIDTH) is None:
            raise Absent(f"{otherwise}; nor are {PINGPONG} and {BANDWIDTH} on PATH")
        return cls(provider, cores=cores)

    def call(self, name: str, /, *arguments: Any) -> list[Any]:
        """As of :class:`~ofipy.pingpong.pair.Pair`, with the answer of the first side only.

        Raises
        ------
        LibfabricError
            When a program fails.
        Absent
            When there is no program for it.
        """
        return [getattr(self, name)(*arguments)]

    def version(self) -> str:
        """Of the library, and what runs on it."""
        return f"{library_version()} ({PINGPONG}, {BANDWIDTH})"

    def latency(self, mode: str, size: int, count: int, chunks: int, samples: int) -> tuple[Times, Times]:
        """One run; it tells a mean, and nothing of single round trips."""
        row = self._run(PINGPONG, size, max(LEAST_ITERATIONS, count * chunks))
        return np.array([round(row["usec/xfer"] * 2e3 * count)], dtype=np.int64), np.zeros(0, dtype=np.int64)

    def bandwidth(self, mode: str, size: int, window: int, count: int, rewrite: bool) -> Times:
        """One run.

        Raises
        ------
        Absent
            When it was to rewrite what it sends: the programs cannot.
        """
        if rewrite:
            raise Absent(f"{BANDWIDTH} does not rewrite its buffer")
        row = self._run(BANDWIDTH, size, window * max(count, LEAST_WINDOWS), window)
        return np.array([round(window * size * 1e3 / row["MB/sec"])], dtype=np.int64)

    def _run(self, program: str, size: int, iterations: int, window: int | None = None) -> dict[str, float]:
        return run_program(
            program,
            provider=self._provider,
            size=size,
            iterations=iterations,
            cores=self._cores,
            window=window,
        )

    def close(self) -> None:
        """Nothing runs between the calls."""

    kill = close


def library_version() -> str:
    """Version that ``fi_info`` prints; ``unknown`` without that program."""
    if (program := shutil.which("fi_info")) is None:
        return "unknown"
    printed = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=START_SECONDS, check=False
    )
    for line in printed.stdout.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "libfabric":
            return value.strip()
    return "unknown"


def run_program(
    program: str,
    *,
    provider: str,
    size: int,
    iterations: int,
    cores: tuple[int, int],
    window: int | None = None,
) -> dict[str, float]:
    """Run server and client of one program once.

    Parameters
    ----------
    program : str
        Its name.
    provider : str
        libfabric's name of the provider.
    size : int
        Bytes of a message.
    iterations : int
        Timed iterations.
    cores : tuple of int
        Core of the client and of the server.
    window : int, optional
        Messages between acknowledgements, for the programs that have windows.

    Returns
    -------
    dict
        What the client measured by the name it prints, ``usec/xfer`` and ``MB/sec`` among them.

    Raises
    ------
    LibfabricError
        When either side fails.
    """
    port = free_port()
    command = [
        program,
        "-m",
        "-p",
        provider,
        "-I",
        str(iterations),
        "-S",
        str(size),
        "-w",
        "100",
        f"-E={port}",
    ]
    if window is not None:
        command += ["-W", str(window)]
    with started(command, cores[1]) as server:
        wait_listening(server, port)
        with started([*command, "127.0.0.1"], cores[0]) as client:
            try:
                output, errors = client.communicate(timeout=RUN_SECONDS)
            except subprocess.TimeoutExpired:
                raise LibfabricError(f"{program} did not finish within {RUN_SECONDS:g} s") from None
            if client.returncode != 0:
                raise LibfabricError(f"{program} ended with code {client.returncode}: {errors.strip()}")
            return read_row(output)


@contextlib.contextmanager
def started(command: list[str], core: int) -> Iterator[subprocess.Popen[str]]:
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
            raise LibfabricError(
                f"the server ended with code {server.returncode}: {server.stderr.read().strip()}"
            )
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in Path(table).read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if state == STATE_LISTEN and int(local.rpartition(":")[2], 16) == port:
                    return
        time.sleep(0.005)
    raise LibfabricError(f"the server does not listen on port {port}")


def read_row(output: str) -> dict[str, float]:
    """Take the figures from the last mapping of the machine-readable output."""
    _, brace, row = output.rpartition("{")
    if not brace:
        raise LibfabricError(f"libfabric's program printed no result: {output!r}")
    pairs = (field.split(":") for field in row.partition("}")[0].split(","))
    return {name.strip(): float(value) for name, value in pairs}
