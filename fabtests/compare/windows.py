# SPDX-License-Identifier: BSD-3-Clause
"""Cases of windows: so many messages one way, then an acknowledgement."""

import numpy as np
import numpy.typing as npt

from fabtests.compare.case import Case, Cell, Round
from fabtests.compare.entrants import SHM_PEERS, TCP_PEERS, Entrant
from fabtests.compare.field import Field

__all__ = ["ShmBandwidth", "TcpBandwidth", "TcpRate", "Windows"]

REWRITTEN = "rewritten"


class Windows(Case):
    """How much goes through in windows of messages."""

    metric = "mb_per_sec"
    window_size = 64  # messages, as in libfabric's and other bandwidth programs
    round_nanoseconds = 20e6

    def peer_cells(self, mode: str, size: int) -> dict[str, Cell]:
        """Peers rewrite where ofipy does."""
        way = REWRITTEN if rewrites(mode) else "plain"
        return {peer.name: Cell(peer, way, size) for peer in self.peers}

    def window(self, cell: Cell) -> int:
        """Messages between acknowledgements: one where every message is rewritten first."""
        return 1 if rewrites(cell.mode) else self.window_size

    def time_windows(self, field: Field, cell: Cell, count: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of `count` windows."""
        way = cell.mode.removesuffix(f"-{REWRITTEN}")
        times: npt.NDArray[np.int64] = field.pair(cell.entrant).call(
            "bandwidth", way, cell.size, self.window(cell), count, rewrites(cell.mode)
        )[0]
        return times

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Windows that fill a round."""
        taken = float(np.median(self.time_windows(field, cell, 3)))
        return max(3, min(500, round(self.round_nanoseconds / taken)))

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median window."""
        rates = self.rate(self.window(cell), cell.size, self.time_windows(field, cell, count))
        return Round(float(np.median(rates)), rates)

    def rate(self, window: int, size: int, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """What windows of so many nanoseconds come to: MB/s."""
        return window * size * 1e3 / times


def rewrites(mode: str) -> bool:
    """Whether the sender fills its buffer before every message."""
    return mode.endswith(REWRITTEN)


class ShmBandwidth(Windows):
    """Over shared memory."""

    name = "shm-bandwidth"
    provider = "shm"
    modes = ("array", "domain", "array-rewritten", "domain-rewritten")
    sizes = (65536, 1 << 20, 4 << 20)
    peers = (Entrant("attach"), *SHM_PEERS)


class TcpBandwidth(Windows):
    """Over TCP, through the loopback interface."""

    name = "tcp-bandwidth"
    provider = "tcp"
    modes = ("array",)
    sizes = (65536, 1 << 20, 4 << 20)
    peers = TCP_PEERS


class TcpRate(Windows):
    """How many small messages go through."""

    name = "tcp-rate"
    metric = "messages_per_sec"
    provider = "tcp"
    modes = ("batch",)
    sizes = (8,)
    peers = TCP_PEERS

    def rate(self, window: int, size: int, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Messages a second."""
        return window * 1e9 / times
