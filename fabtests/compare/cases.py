# SPDX-License-Identifier: BSD-3-Clause
"""The cases: their rows, whom each row is compared with, how one round of one contender is taken."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabtests.compare import libfabric
from fabtests.compare.field import Field

__all__ = ["CASES", "Case", "Cell", "Round"]

OFIPY = "ofipy"
LIBFABRIC = "libfabric"
CHUNK_NANOSECONDS = 0.4e6  # well below a time slice, so that another process on the machine spoils few chunks
CHUNKS = 25
SAMPLES = 200
NO_SAMPLES: npt.NDArray[np.float64] = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One contender in one mode at one size: what a round measures."""

    contender: str
    mode: str
    size: int


@dataclass(frozen=True, slots=True)
class Round:
    """What a round found, in the unit of the case's metric."""

    value: float
    samples: npt.NDArray[np.float64]
    """Single measurements, for the tail."""


class Case(ABC):
    """A question that a table answers."""

    name: str
    metric: str
    provider: str
    modes: tuple[str, ...]
    sizes: tuple[int, ...]
    peers: tuple[str, ...]
    size_key = "bytes"
    """Name of the size in the document."""
    caps: tuple[str, ...] = ()
    """Capabilities that the provider must have."""

    def metric_of(self, mode: str) -> str:
        """The metric of a row of this mode."""
        return self.metric

    def higher_is_better(self, mode: str) -> bool:
        """Whether that is a rate rather than a time."""
        return self.metric_of(mode) != "usec_per_transfer"

    @abstractmethod
    def groups(self) -> list[list[tuple[str, int]]]:
        """Rows (mode, size) by group; the rounds of a group's contenders alternate."""

    @abstractmethod
    def own_cell(self, mode: str, size: int) -> Cell:
        """What to measure of ofipy for a row."""

    @abstractmethod
    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """What to measure of each peer for a row."""

    @abstractmethod
    def calibrate(self, field: Field, cell: Cell) -> int:
        """Repetitions that one timed part of this cell needs; to find out warms the cell up."""

    @abstractmethod
    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """Take one round."""


class Latency(Case):
    """Half a round trip of a ping-pong."""

    metric = "usec_per_transfer"
    provider = "shm"
    libfabric_iterations = 20000

    def groups(self) -> list[list[tuple[str, int]]]:
        """A group for each size."""
        return [[(mode, size) for mode in self.modes] for size in self.sizes]

    def own_cell(self, mode: str, size: int) -> Cell:
        """The mode itself."""
        return Cell(OFIPY, mode, size)

    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """Each peer in its one way."""
        return {peer: Cell(peer, "plain", size) for peer in self.peers}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Round trips that fill a chunk."""
        if cell.contender == LIBFABRIC:
            return self.libfabric_iterations
        count = 4
        while True:
            chunk, _ = field.pair(cell.contender).call("latency", cell.mode, cell.size, count, 1, 1)[0]
            taken = float(chunk[0])
            if taken >= CHUNK_NANOSECONDS / 8:
                return max(1, round(count * CHUNK_NANOSECONDS / taken))
            count *= 8

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median of a few chunks, and single round trips for the tail."""
        if cell.contender == LIBFABRIC:
            row = libfabric.run_program(
                libfabric.PINGPONG,
                provider=self.provider,
                size=cell.size,
                iterations=count,
                cores=field.cores,
            )
            return Round(row["usec/xfer"], NO_SAMPLES)
        samples = min(SAMPLES, 4 * count)
        chunks, single = field.pair(cell.contender).call(
            "latency", cell.mode, cell.size, count, CHUNKS, samples
        )[0]
        return Round(float(np.median(chunks)) / count / 2e3, single / 2e3)


class ShmLatency(Latency):
    """Tagged ping-pong over shared memory."""

    name = "shm-latency"
    modes = ("native", "blocking", "prepared", "await")
    sizes = (8, 64, 1024, 8192, 65536)
    peers = ("mpi4py", "libfabric", "multiprocessing", "pyzmq")


class Gil(Latency):
    """The same with a Python thread that computes beside the first side: the mean over a fixed time."""

    name = "gil"
    modes = ("native", "blocking", "prepared", "await")
    sizes = (8,)
    peers = ("mpi4py", "multiprocessing", "pyzmq")
    batch = 10
    native_batch = 1000  # its point is to stay in C
    round_nanoseconds = 300e6  # many turns of the interpreter's switch interval of 5 ms

    def calibrate(self, field: Field, cell: Cell) -> int:
        """The time is fixed, so this is the batch."""
        return self.native_batch if cell.mode == "native" else self.batch

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The mean: medians of so wild a distribution jump."""
        taken, done = field.pair(cell.contender).call(
            "busy_latency", cell.mode, cell.size, count, self.round_nanoseconds
        )[0]
        return Round(taken / done / 2e3, NO_SAMPLES)


class ShmBandwidth(Case):
    """A window of messages one way, then an acknowledgement."""

    name = "shm-bandwidth"
    metric = "mb_per_sec"
    provider = "shm"
    modes = ("array", "domain", "array-rewritten", "domain-rewritten")
    sizes = (65536, 1 << 20, 4 << 20)
    peers = ("attach", "mpi4py", "libfabric", "multiprocessing", "pyzmq")
    window_size = 64  # messages, as in libfabric's and other bandwidth programs
    round_nanoseconds = 20e6

    def groups(self) -> list[list[tuple[str, int]]]:
        """A group for each size."""
        return [[(mode, size) for mode in self.modes] for size in self.sizes]

    def own_cell(self, mode: str, size: int) -> Cell:
        """The mode itself."""
        return Cell(OFIPY, mode, size)

    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """Peers rewrite where ofipy does; libfabric's program cannot."""
        way = "rewritten" if rewrites(mode) else "plain"
        able = [peer for peer in self.peers if not (rewrites(mode) and peer == LIBFABRIC)]
        return {peer: Cell(peer, way, size) for peer in able}

    def window(self, cell: Cell) -> int:
        """Messages between acknowledgements: one where every message is rewritten first."""
        return 1 if rewrites(cell.mode) else self.window_size

    def time_windows(self, field: Field, cell: Cell, count: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of `count` windows."""
        buffers = cell.mode.removesuffix("-rewritten")
        times: npt.NDArray[np.int64] = field.pair(cell.contender).call(
            "bandwidth", buffers, cell.size, self.window(cell), count, rewrites(cell.mode)
        )[0]
        return times

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Windows that fill a round."""
        if cell.contender == LIBFABRIC:
            return 32 * self.window(cell)
        taken = float(np.median(self.time_windows(field, cell, 3)))
        return max(3, min(500, round(self.round_nanoseconds / taken)))

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median window."""
        if cell.contender == LIBFABRIC:
            row = libfabric.run_program(
                libfabric.BANDWIDTH,
                provider=self.provider,
                size=cell.size,
                iterations=count,
                cores=field.cores,
                window=self.window(cell),
            )
            return Round(row["MB/sec"], NO_SAMPLES)
        times = self.time_windows(field, cell, count)
        rates = self.window(cell) * cell.size * 1e3 / times
        return Round(float(np.median(rates)), rates)


def rewrites(mode: str) -> bool:
    """Whether the sender fills its buffer before every message."""
    return mode.endswith("rewritten")


class ShmRma(Case):
    """Writes into the other side's memory: how fast large ones are, and how soon a small one is seen."""

    name = "shm-rma"
    metric = "mb_per_sec"
    provider = "shm"
    modes = ("target-idle", "target-reads", "blocking")
    sizes = (8, 1 << 20)
    peers = ("attach", "tagged")
    caps = ("rma",)
    small = 8
    window_size = 64  # writes at an idle target; one that reads acknowledges each
    round_nanoseconds = 20e6
    latency = ShmLatency()

    def metric_of(self, mode: str) -> str:
        """A time where the target writes back."""
        return "usec_per_transfer" if mode == "blocking" else self.metric

    def groups(self) -> list[list[tuple[str, int]]]:
        """Large writes, small ones."""
        return [[(mode, 1 << 20) for mode in self.modes[:2]], [("blocking", self.small)]]

    def own_cell(self, mode: str, size: int) -> Cell:
        """A ping-pong of writes is another than that of messages."""
        return Cell(OFIPY, f"write-{mode}" if mode == "blocking" else mode, size)

    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """Attach writes where ofipy writes; beside the ping-pong of writes stands that of messages."""
        if mode == "blocking":
            return {"tagged": Cell(OFIPY, mode, size)}
        return {"attach": Cell("attach", mode, size)}

    def time_windows(self, field: Field, cell: Cell, count: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of `count` windows."""
        times: npt.NDArray[np.int64] = field.pair(cell.contender).call(
            "bandwidth", cell.mode, cell.size, self.window(cell), count, False
        )[0]
        return times

    def window(self, cell: Cell) -> int:
        """Writes in a window."""
        return self.window_size if cell.mode == "target-idle" else 1

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Round trips of a chunk, or windows that fill a round."""
        if cell.size == self.small:
            return self.latency.calibrate(field, cell)
        taken = float(np.median(self.time_windows(field, cell, 3)))
        return max(3, min(500, round(self.round_nanoseconds / taken)))

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median of chunks, or of windows."""
        if cell.size == self.small:
            return self.latency.run(field, cell, count)
        times = self.time_windows(field, cell, count)
        rates = self.window(cell) * cell.size * 1e3 / times
        return Round(float(np.median(rates)), rates)


class MatchDepth(Case):
    """The cost of a match with many entries queued."""

    name = "match-depth"
    metric = "usec_per_transfer"
    provider = "core"
    modes = ("expected", "unexpected", "same-tag", "any-source", "masked")
    sizes = (1, 16, 256, 1024, 4096, 16384, 65536)
    peers = ("depth-1",)
    size_key = "depth"

    def groups(self) -> list[list[tuple[str, int]]]:
        """A group for each mode, so that the depths alternate."""
        return [[(mode, depth) for depth in self.sizes] for mode in self.modes]

    def own_cell(self, mode: str, size: int) -> Cell:
        """The matcher has a process of its own, without a transport."""
        return Cell("matcher", mode, size)

    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """The same at depth 1."""
        return {"depth-1": Cell("matcher", mode, 1)}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """One call is long enough."""
        return 1

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One call."""
        nanoseconds = field.pair("matcher").call("match", cell.mode, cell.size)[0]
        return Round(nanoseconds / 1e3, NO_SAMPLES)


CASES: dict[str, Case] = {
    case.name: case for case in (ShmLatency(), ShmBandwidth(), ShmRma(), MatchDepth(), Gil())
}
