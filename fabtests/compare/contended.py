# SPDX-License-Identifier: BSD-3-Clause
"""The case of a busy memory bus: the way that ofipy chooses beside each way that it could have chosen."""

import numpy as np
import numpy.typing as npt

from fabtests.compare.case import Cell, Line, Round
from fabtests.compare.entrants import COPIER, FORCED, Entrant
from fabtests.compare.field import Field
from fabtests.compare.windows import Windows

__all__ = ["ArrayContended"]


class ArrayContended(Windows):
    """Arrays of 1 MiB over shared memory, with a neighbour that fills the memory bus and without; µs a message."""

    name = "array-contended"
    metric = "usec_per_transfer"
    provider = "shm"
    modes = ("array-contended", "array")
    sizes = (1 << 20,)
    peers = tuple(FORCED)
    neighbour = Entrant(COPIER)
    round_nanoseconds = 200e6  # many turns of the scheduler, where the neighbour shares a core

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The same of each forced way."""
        return {peer.name: Cell(peer, line.mode, line.size) for peer in self.peers}

    def time_windows(self, field: Field, cell: Cell, count: int) -> npt.NDArray[np.int64]:
        """Nanoseconds of `count` windows; the neighbour copies in its own mode only, and sleeps at all other times."""
        plain = Cell(cell.entrant, "array", cell.size)
        if cell.mode == plain.mode:
            return super().time_windows(field, plain, count)
        field.has(self.neighbour)  # the first time this starts it
        neighbour = field.pair(self.neighbour)
        neighbour.call("begin")
        try:
            return super().time_windows(field, plain, count)
        finally:
            neighbour.call("end")

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The mean: where a core is shared, single windows meet the neighbour's turn or do not."""
        times = self.rate(self.window(cell), cell.size, self.time_windows(field, cell, count))
        return Round(float(np.mean(times)), times)

    def rate(self, window: int, size: int, times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """What windows of so many nanoseconds come to: µs a message."""
        return times / (window * 1e3)
