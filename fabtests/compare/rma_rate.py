# SPDX-License-Identifier: BSD-3-Clause
"""The case of many small writes into the other side's memory."""

from fabtests.compare.case import Cell, Line
from fabtests.compare.entrants import UCX
from fabtests.compare.ucx import PUT
from fabtests.compare.windows import Rates

__all__ = ["RmaRate"]


class RmaRate(Rates):
    """How many small writes go through; UCX puts one after the other and flushes at the end."""

    name = "rma-rate"
    provider = "shm"
    peers = (UCX,)
    caps = ("rma",)
    window_size = 1024

    def own_cell(self, line: Line) -> Cell:
        """Writes in batches are others than messages."""
        return Cell(self.own, f"write-{line.mode}", line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """UCX's puts."""
        return {UCX.name: Cell(UCX, PUT, line.size)}
