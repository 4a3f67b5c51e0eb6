# SPDX-License-Identifier: BSD-3-Clause
"""UCX's own benchmark, ``ucx_perftest``, over shared memory: both sides are started for every round.

Of its two ways to move large messages, with and without cross-memory attach, the faster one counts. The server answers
as it goes, so the target of its one-sided operations is never asleep.
"""

import os
import shutil
import subprocess
from typing import Any, Self

import numpy as np

from fabtests.compare.contender import Times
from fabtests.compare.entrants import Absent
from fabtests.compare.programs import START_SECONDS, ProgramError, free_port, run_both

__all__ = ["FETCH_ADD", "PUT", "Ucx", "read_result"]

PROGRAM = "ucx_perftest"
PUT, FETCH_ADD = "put", "fetch-add"
WITHOUT, WITH = "posix,self", "posix,cma,self"
ATTACH_FROM = 4096  # bytes; smaller messages never go that way
LEAST_ITERATIONS = 200000
LEAST_LARGE = 500
LEAST_BYTES = 256 << 20  # of a round of a bandwidth
COLUMNS = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr"
MEDIAN, RATE = 1, 7  # columns: microseconds, operations a second


class Ucx:
    """Answers the calls of a :class:`~fabtests.compare.bench.Bench` by running the program.

    Parameters
    ----------
    cores : tuple of int
        Core of the client and of the server.
    """

    def __init__(self, *, cores: tuple[int, int]) -> None:
        self._cores = cores

    @classmethod
    def found(cls, *, cores: tuple[int, int]) -> Self:
        """The program on the PATH.

        Raises
        ------
        Absent
            When it is not there.
        """
        if shutil.which(PROGRAM) is None:
            raise Absent(f"{PROGRAM} is not on PATH; Debian's package ucx-utils has it")
        return cls(cores=cores)

    def call(self, name: str, /, *arguments: Any) -> list[Any]:
        """As of :class:`~ofipy.pingpong.pair.Pair`, with the answer of the first side only.

        Raises
        ------
        ProgramError
            When the program fails.
        Absent
            When it does not do that.
        """
        return [getattr(self, name)(*arguments)]

    def version(self) -> str:
        """As ``ucx_info`` prints it."""
        if (program := shutil.which("ucx_info")) is None:
            return "unknown"
        printed = subprocess.run(
            [program, "-v"], capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        return printed.stdout.partition("Version ")[2].split("\n")[0].strip() or "unknown"

    def latency(self, mode: str, size: int, count: int, chunks: int, samples: int) -> tuple[Times, Times]:
        """One run of a tagged ping-pong: its median, doubled to a round trip. Of fetch-adds: the mean."""
        iterations = max(LEAST_ITERATIONS if size < ATTACH_FROM else LEAST_LARGE, count * chunks)
        if mode == FETCH_ADD:
            taken = 1e9 / self._best("ucp_fadd", size, iterations)[RATE]
        else:
            taken = 2e3 * self._best("tag_lat", size, iterations)[MEDIAN]
        return np.array([round(taken * count)], dtype=np.int64), np.zeros(0, dtype=np.int64)

    def bandwidth(self, mode: str, size: int, window: int, count: int, rewrite: bool) -> Times:
        """One run: nanoseconds of a window, of tagged messages or of puts.

        Raises
        ------
        Absent
            When it was to rewrite what it sends.
        """
        if rewrite:
            raise Absent(f"{PROGRAM} does not rewrite its buffer")
        iterations = max(window * count, min(LEAST_ITERATIONS, LEAST_BYTES // size))
        row = self._best("ucp_put_bw" if mode == PUT else "tag_bw", size, iterations)
        return np.array([round(window * 1e9 / row[RATE])], dtype=np.int64)

    def _best(self, test: str, size: int, iterations: int) -> list[float]:
        transports = (WITHOUT, WITH) if size >= ATTACH_FROM else (WITHOUT,)
        return max(
            (self._run(test, size, iterations, each) for each in transports), key=lambda row: row[RATE]
        )

    def _run(self, test: str, size: int, iterations: int, transports: str) -> list[float]:
        port = free_port()
        environment = ["env", f"UCX_TLS={transports}", "UCX_LOG_LEVEL=error"]
        server = [*environment, PROGRAM, "-p", str(port)]
        what = [
            "-t",
            test,
            "-s",
            str(size),
            "-n",
            str(iterations),
            "-w",
            str(min(iterations, 10000)),
            "-v",
            "-f",
        ]
        return read_result(run_both(server, [*server, *what, "127.0.0.1"], port=port, cores=self._cores))

    def close(self) -> None:
        """Nothing runs between the calls."""

    kill = close


def read_result(output: str) -> list[float]:
    """The columns of the last line.

    Raises
    ------
    ProgramError
        When it printed something else.
    """
    _, heading, rest = output.partition(COLUMNS + os.linesep)
    try:
        row = [float(each) for each in rest.strip().splitlines()[-1].split(",")] if heading else []
    except (IndexError, ValueError):
        row = []
    if len(row) != len(COLUMNS.split(",")) or not row[RATE]:
        raise ProgramError(f"{PROGRAM} printed no result: {output!r}")
    return row
