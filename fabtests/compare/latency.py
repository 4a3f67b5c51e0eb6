# SPDX-License-Identifier: BSD-3-Clause
"""Cases of ping-pongs."""

import numpy as np

from fabtests.compare.case import NO_SAMPLES, Case, Cell, Round
from fabtests.compare.entrants import IN_C, SHM_PEERS, TCP_PEERS
from fabtests.compare.field import Field
from ofipy.pingpong.plan import fill_time

__all__ = ["Gil", "Latency", "ShmLatency", "TcpLatency"]

CHUNK_NANOSECONDS = 0.4e6  # well below a time slice, so that another process on the machine spoils few chunks
CHUNKS = 25
TRIALS = 5
SAMPLES = 200


class Latency(Case):
    """Half a round trip of a tagged ping-pong."""

    metric = "usec_per_transfer"
    modes: tuple[str, ...] = ("native", "blocking", "prepared", "await")
    sizes: tuple[int, ...] = (8, 64, 1024, 8192, 65536)
    transfers = 2
    """In one exchange."""

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Round trips that fill a chunk."""
        count = 4
        while True:
            # The quickest of a few: one that lost its core would make all chunks of the run too short.
            trials, _ = field.pair(cell.entrant).call("latency", cell.mode, cell.size, count, TRIALS, 1)[0]
            taken = float(trials.min())
            if taken >= CHUNK_NANOSECONDS / 8:
                return fill_time(CHUNK_NANOSECONDS, taken / count)
            count *= 8

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median of a few chunks, and single round trips for the tail."""
        samples = min(SAMPLES, 4 * count)
        chunks, single = field.pair(cell.entrant).call(
            "latency", cell.mode, cell.size, count, CHUNKS, samples
        )[0]
        unit = self.transfers * 1e3
        return Round(float(np.median(chunks)) / count / unit, single / unit)


class ShmLatency(Latency):
    """Over shared memory."""

    name = "shm-latency"
    provider = "shm"
    sizes = (*Latency.sizes, 1 << 20)
    peers = SHM_PEERS


class TcpLatency(Latency):
    """Over TCP, through the loopback interface."""

    name = "tcp-latency"
    provider = "tcp"
    peers = TCP_PEERS


class Gil(Latency):
    """The same with a Python thread that computes beside the first side: the mean over a fixed time."""

    name = "gil"
    provider = "shm"
    sizes = (8,)
    peers = tuple(peer for peer in SHM_PEERS if peer.name not in IN_C)
    batch = 10
    native_batch = 1000  # its point is to stay in C
    round_nanoseconds = 300e6  # many turns of the interpreter's switch interval of 5 ms

    def calibrate(self, field: Field, cell: Cell) -> int:
        """The time is fixed, so this is the batch."""
        return self.native_batch if cell.mode == "native" else self.batch

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The mean: medians of so wild a distribution jump."""
        taken, done = field.pair(cell.entrant).call(
            "busy_latency", cell.mode, cell.size, count, self.round_nanoseconds
        )[0]
        return Round(taken / done / 2e3, NO_SAMPLES)
