# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs, what a device does under plain verbs: both sides are started for every round.

They are told to do what the loops of modes ``native-…`` do: one queue pair of type RC, every message, write and read
out of and into memory that was registered once, every one with a completion of its own.
"""

import re
import shutil
import subprocess
from typing import Any, Self

import numpy as np

from fabtests.compare.contender import Times
from fabtests.compare.entrants import Absent
from fabtests.compare.programs import START_SECONDS, ProgramError, free_port, run_both
from fabtests.compare.ways.connected import DEPTH

__all__ = ["LATENCY", "WINDOWS", "Perftest", "read_bandwidth", "read_latencies"]

# By mode.
LATENCY = {"native-send": "ib_send_lat", "native-write": "ib_write_lat", "native-read": "ib_read_lat"}
WINDOWS = {"native-write": "ib_write_bw", "native-read": "ib_read_bw"}
LEAST_ITERATIONS = 5  # they refuse fewer
ATTEMPTS = 5
MEBIBYTE = 1 << 20  # what they call MB


class Perftest:
    """Answers the calls of a :class:`~fabtests.compare.bench.Bench` by running a program.

    Parameters
    ----------
    device : str
        As ofipy names it, with the port behind a colon where it has several.
    cores : tuple of int
        Core of the client and of the server.
    """

    def __init__(self, device: str, *, cores: tuple[int, int]) -> None:
        self._device, _, port = device.removesuffix("-ipv6").partition(":")
        self._port = port or "1"
        self._cores = cores

    @classmethod
    def found(cls, device: str, *, cores: tuple[int, int]) -> Self:
        """The programs on the PATH.

        Raises
        ------
        Absent
            When one is not there.
        """
        programs = {*LATENCY.values(), *WINDOWS.values()}
        if missing := sorted(program for program in programs if shutil.which(program) is None):
            raise Absent(f"not on PATH: {', '.join(missing)}; Debian's package perftest has them")
        return cls(device, cores=cores)

    def call(self, name: str, /, *arguments: Any) -> list[Any]:
        """As of :class:`~ofipy.pingpong.pair.Pair`, with the answer of the first side only.

        Raises
        ------
        ProgramError
            When a program fails.
        """
        return [getattr(self, name)(*arguments)]

    def version(self) -> str:
        """As the programs print it."""
        printed = subprocess.run(
            [LATENCY["native-send"], "--version"],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        found = re.search(r"Version: *(\S+)", printed.stdout)
        return found[1] if found else "unknown"

    def singles(self, mode: str, size: int, count: int) -> Times:
        """Nanoseconds of round trips, or of reads. They print the half of a round trip."""
        output = self._run(LATENCY[mode], size, count, there=[], here=["--report-unsorted"])
        return np.rint(read_latencies(output) * (1e3 if mode == "native-read" else 2e3)).astype(np.int64)

    def bandwidth(self, mode: str, size: int, window: int, count: int, rewrite: bool) -> Times:
        """Nanoseconds of a window: the mean, which is all that they tell."""
        options = [f"--tx-depth={DEPTH}", "--cq-mod=1", "--noPeak"]
        output = self._run(WINDOWS[mode], size, window * count, there=options, here=options)
        return np.array([round(window * size * 1e3 / read_bandwidth(output))], dtype=np.int64)

    def _run(self, program: str, size: int, iterations: int, *, there: list[str], here: list[str]) -> str:
        port = free_port()
        command = [
            program,
            "-F",
            f"--ib-dev={self._device}",
            f"--ib-port={self._port}",
            f"--port={port}",
            f"--size={size}",
            f"--iters={max(iterations, LEAST_ITERATIONS)}",
        ]
        server, client = [*command, *there], [*command, *here, "127.0.0.1"]
        for _ in range(ATTEMPTS):
            output = run_both(server, client, port=port, cores=self._cores)
            # They count cycles, and find out at their end how many a second has: not while others take turns.
            if not re.search(r"\binf\b", output):
                break
        return output

    def close(self) -> None:
        """Nothing runs between the calls."""

    kill = close


def read_latencies(output: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The microseconds that are listed one a line, in the order in which they were taken.

    Raises
    ------
    ProgramError
        When there are none.
    """
    _, heading, rest = output.partition("#, usec\n")
    found = re.findall(r"^\d+, *([0-9.e+-]+)$", rest, re.MULTILINE)
    if not heading or not found:
        raise ProgramError(f"perftest's program listed no latencies: {output!r}")
    try:
        return np.array([float(each) for each in found])
    except ValueError:
        raise ProgramError(f"perftest's program listed what is no number: {output!r}") from None


def read_bandwidth(output: str) -> float:
    """The average of the table's one row, in MB/s.

    Raises
    ------
    ProgramError
        When there is no such row.
    """
    _, heading, rest = output.partition("BW average[MB/sec]")
    row = re.search(r"^ *\d+ +\d+ +[0-9.]+ +([0-9.]+)\s", rest, re.MULTILINE)
    if not heading or row is None or not float(row[1]):
        raise ProgramError(f"perftest's program printed no bandwidth: {output!r}")
    return float(row[1]) * MEBIBYTE / 1e6
