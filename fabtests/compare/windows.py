# SPDX-License-Identifier: BSD-3-Clause
"""Cases of windows: so many messages one way, then an acknowledgement."""

import numpy as np
import numpy.typing as npt

from fabtests.compare.case import Case, Cell, Line, Round
from fabtests.compare.contender import DISTINCT, count_distinct
from fabtests.compare.entrants import IN_C, MPI, SHM_PEERS, TCP_PEERS, Entrant
from fabtests.compare.field import Field
from ofipy.pingpong.plan import WINDOW, fill_time

__all__ = ["Rates", "ShmBandwidth", "TcpBandwidth", "TcpRate", "Windows"]

REWRITTEN = "rewritten"
ATTACH = Entrant("attach")
TAKES_DISTINCT = (ATTACH, MPI)


class Windows(Case):
    """How much goes through in windows of messages."""

    metric = "mb_per_sec"
    window_size = WINDOW
    round_nanoseconds = 20e6

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """Peers do as ofipy does: some take distinct buffers, and those whose loop is in C do not read what came."""
        peers, mode = self.peers, "plain"
        if rewrites(line.mode):
            peers, mode = tuple(peer for peer in peers if peer.name not in IN_C), REWRITTEN
        elif line.mode.endswith(DISTINCT):
            peers, mode = tuple(peer for peer in peers if peer in TAKES_DISTINCT), DISTINCT
        return {peer.name: Cell(peer, mode, line.size) for peer in peers}

    def window(self, cell: Cell) -> int:
        """Messages between acknowledgements: one where every message is rewritten first."""
        if rewrites(cell.mode):
            return 1
        return count_distinct(cell.size) if cell.mode.endswith(DISTINCT) else self.window_size

    def time_windows(self, field: Field, cell: Cell, count: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of `count` windows."""
        mode = cell.mode.removesuffix(f"-{REWRITTEN}")
        times: npt.NDArray[np.int64] = field.pair(cell.entrant).call(
            "bandwidth", mode, cell.size, self.window(cell), count, rewrites(cell.mode)
        )[0]
        return times

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Windows that fill a round."""
        taken = float(np.median(self.time_windows(field, cell, 3)))
        return fill_time(self.round_nanoseconds, taken, least=3, most=500)

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
    modes = ("array", "array-distinct", "domain", "array-rewritten", "domain-rewritten")
    sizes = (65536, 1 << 20, 4 << 20)
    peers = (ATTACH, *SHM_PEERS)


class TcpBandwidth(Windows):
    """Over TCP, through the loopback interface."""

    name = "tcp-bandwidth"
    provider = "tcp"
    modes = ("array", "request")
    sizes = (65536, 1 << 20, 4 << 20)
    peers = TCP_PEERS
    request_size = 65536  # bytes

    def groups(self) -> list[list[Line]]:
        """Arrays, a request each; at 64 KiB, where that still counts beside the bytes, the mode is named so."""
        return [
            [line for line in group if (line.mode == "request") == (line.size == self.request_size)]
            for group in super().groups()
        ]


class Rates(Windows):
    """How many small operations go through."""

    metric = "messages_per_sec"
    modes: tuple[str, ...] = ("batch",)
    sizes: tuple[int, ...] = (8,)

    def rate(self, window: int, size: int, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Operations a second."""
        return window * 1e9 / times


class TcpRate(Rates):
    """Messages over TCP, through the loopback interface."""

    name = "tcp-rate"
    provider = "tcp"
    peers = TCP_PEERS
