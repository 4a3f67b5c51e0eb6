# SPDX-License-Identifier: BSD-3-Clause
"""The case of starting: what a program pays before its first message."""

from fabtests.compare.case import NO_SAMPLES, Case, Cell, Line, Round
from fabtests.compare.entrants import STARTER, Entrant
from fabtests.compare.field import Field

__all__ = ["Start"]


class Start(Case):
    """Importing ofipy, and the first ``open()`` after that, each in a process of its own."""

    name = "start"
    metric = "usec"
    provider = "link"
    modes = ("open", "import")
    sizes = (0,)
    peers = ()
    needs_provider = False

    @property
    def own(self) -> Entrant:
        """One process starts all."""
        return Entrant(STARTER)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """Importing numpy, which ofipy leaves to the first call that needs an array."""
        return {"numpy": Cell(self.own, "numpy", line.size)}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """One start is long enough; the first reads the files."""
        field.pair(cell.entrant).call("measure", cell.mode)
        return 1

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One start."""
        return Round(field.pair(cell.entrant).call("measure", cell.mode)[0] / 1e3, NO_SAMPLES)
