# SPDX-License-Identifier: BSD-3-Clause
"""The case of strided arrays: a column and a block, of either side, without a copy of the whole."""

from fabtests.compare.case import Cell, Line
from fabtests.compare.entrants import MPI, OFIPY, Entrant
from fabtests.compare.views import COPIED, VIEWS
from fabtests.compare.windows import Windows

__all__ = ["Strided"]


class Strided(Windows):
    """Over shared memory; mpi4py has a derived type, and numpy copies before and behind ofipy."""

    name = "strided"
    provider = "shm"
    modes = tuple(VIEWS)
    sizes = (65536, 1 << 20, 4 << 20)
    peers = (MPI,)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The same view by mpi4py, and by ofipy out of and into contiguous copies."""
        copies = Cell(Entrant(OFIPY, self.provider), COPIED + line.mode, line.size)
        return {MPI.name: Cell(MPI, line.mode, line.size), "numpy": copies}
