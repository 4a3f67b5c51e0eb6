# SPDX-License-Identifier: BSD-3-Clause
"""The case of writes into the other side's memory."""

from fabtests.compare.case import Cell, Line, Round
from fabtests.compare.field import Field
from fabtests.compare.latency import ShmLatency
from fabtests.compare.windows import ATTACH, Windows

__all__ = ["ShmRma"]


class ShmRma(Windows):
    """How fast large writes are, and how soon a small one is seen."""

    name = "shm-rma"
    provider = "shm"
    large_modes = ("target-idle", "target-reads")
    small_modes = ("native", "blocking", "prepared")
    modes = large_modes + small_modes
    small, large = 8, 1 << 20
    sizes = (small, large)
    peers = (ATTACH,)
    caps = ("rma",)
    latency = ShmLatency()

    def metric_of(self, mode: str) -> str:
        """A time where the target writes back."""
        return self.latency.metric if mode in self.small_modes else self.metric

    def groups(self) -> list[list[Line]]:
        """Large writes, small ones."""
        return [
            [Line(mode, self.large) for mode in self.large_modes],
            [Line(mode, self.small) for mode in self.small_modes],
        ]

    def own_cell(self, line: Line) -> Cell:
        """A ping-pong of writes is another than that of messages."""
        mode = f"write-{line.mode}" if line.mode in self.small_modes else line.mode
        return Cell(self.own, mode, line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """Attach writes where ofipy writes; beside the ping-pong of writes stands that of messages."""
        if line.mode in self.small_modes:
            return {"tagged": Cell(self.own, line.mode, line.size)}
        return {ATTACH.name: Cell(ATTACH, line.mode, line.size)}

    def window(self, cell: Cell) -> int:
        """Writes in a window: one where the target reads and acknowledges each."""
        return self.window_size if cell.mode == "target-idle" else 1

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Round trips of a chunk, or windows that fill a round."""
        if cell.size == self.small:
            return self.latency.calibrate(field, cell)
        return super().calibrate(field, cell)

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median of chunks, or of windows."""
        if cell.size == self.small:
            return self.latency.run(field, cell, count)
        return super().run(field, cell, count)
