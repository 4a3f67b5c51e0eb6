# SPDX-License-Identifier: BSD-3-Clause
"""Cases of an RDMA device, both sides on it: connected endpoints beside perftest, RDM endpoints beside libfabric's."""

import numpy as np

from fabtests.compare.case import Cell, Line, Round
from fabtests.compare.entrants import LIBFABRIC, OFIPY, PERFTEST, VERBS, Entrant
from fabtests.compare.field import Field
from fabtests.compare.latency import Latency
from fabtests.compare.windows import Windows
from ofipy.pingpong.plan import fill_time

__all__ = ["VerbsBandwidth", "VerbsLatency"]

CONNECTED = Entrant(OFIPY, VERBS, connected=True)


class VerbsLatency(Latency):
    """Half a round trip of messages or writes, the whole of a read.

    Everything is the median of single ones, since perftest tells those.
    """

    name = "verbs-latency"
    provider = VERBS
    connected_modes = ("native-send", "native-write", "native-read")
    modes = (*connected_modes, "native", "prepared", "blocking")
    sizes = (8, 65536)
    round_nanoseconds = 100e6
    trial = 50
    most = 2000

    def own_cell(self, line: Line) -> Cell:
        """What the device does itself is asked of connected endpoints."""
        return Cell(CONNECTED if line.mode in self.connected_modes else self.own, line.mode, line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The same over the same kind of endpoint."""
        connected = line.mode in self.connected_modes
        cells = {"perftest": Cell(PERFTEST, line.mode, line.size)} if connected else {}
        if not connected or line.mode == "native-send":
            peer = Entrant(LIBFABRIC, VERBS, connected=connected)
            cells["libfabric"] = Cell(peer, line.mode if connected else "native", line.size)
        return cells

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Transfers that fill a round."""
        typical = float(np.median(self._take(field, cell, self.trial)))
        return fill_time(self.round_nanoseconds, typical, least=self.trial, most=self.most)

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median of single ones."""
        single = self._take(field, cell, count) / (1e3 if cell.mode == "native-read" else 2e3)
        return Round(float(np.median(single)), single)

    def _take(self, field: Field, cell: Cell, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        times: np.ndarray[tuple[int], np.dtype[np.int64]] = field.pair(cell.entrant).call(
            "singles", cell.mode, cell.size, count
        )[0]
        return times


class VerbsBandwidth(Windows):
    """Writes and reads, 64 under way at a time, to a side that is idle."""

    name = "verbs-bandwidth"
    provider = VERBS
    modes = ("native-write", "native-read")
    sizes = (8, 65536, 1 << 20)
    window_size = 256
    round_nanoseconds = 100e6

    def own_cell(self, line: Line) -> Cell:
        """Over a connection."""
        return Cell(CONNECTED, line.mode, line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The program of that mode."""
        return {"perftest": Cell(PERFTEST, line.mode, line.size)}
