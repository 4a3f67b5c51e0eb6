# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's own C programs, the peer where the bridge finds no library but they are on the PATH.

Both sides are started for every round.
"""

import shutil
import subprocess
from typing import Any, Self

import numpy as np

from fabtests.compare.contender import Times
from fabtests.compare.entrants import Absent
from fabtests.compare.programs import START_SECONDS, ProgramError, free_port, run_both

__all__ = ["BANDWIDTH", "PINGPONG", "Programs", "library_version", "read_row", "run_program"]

PINGPONG = "fi_rdm_tagged_pingpong"
BANDWIDTH = "fi_rdm_tagged_bw"
LEAST_ITERATIONS = 20000
LEAST_WINDOWS = 32


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
        ProgramError
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
    ProgramError
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
    return read_row(run_both(command, [*command, "127.0.0.1"], port=port, cores=cores))


def read_row(output: str) -> dict[str, float]:
    """Take the figures from the last mapping of the machine-readable output."""
    _, brace, row = output.rpartition("{")
    if not brace:
        raise ProgramError(f"libfabric's program printed no result: {output!r}")
    pairs = (field.split(":") for field in row.partition("}")[0].split(","))
    return {name.strip(): float(value) for name, value in pairs}
