# SPDX-License-Identifier: BSD-3-Clause
"""The case of matching alone."""

from fabtests.compare.case import NO_SAMPLES, Case, Cell, Line, Round
from fabtests.compare.entrants import MATCHER, Entrant
from fabtests.compare.field import Field

__all__ = ["MatchDepth"]


class MatchDepth(Case):
    """The cost of a match with many entries queued."""

    name = "match-depth"
    metric = "usec_per_transfer"
    provider = "core"
    modes = ("expected", "unexpected", "same-tag", "any-source", "masked")
    sizes = (1, 16, 256, 1024, 4096, 16384, 65536)
    peers = ()
    size_key = "depth"
    needs_provider = False

    @property
    def own(self) -> Entrant:
        """The matcher has a process of its own, without a transport."""
        return Entrant(MATCHER)

    def groups(self) -> list[list[Line]]:
        """A group for each mode, so that the depths alternate."""
        return [[Line(mode, depth) for depth in self.sizes] for mode in self.modes]

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The same at depth 1."""
        return {"depth-1": Cell(self.own, line.mode, 1)}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """One call is long enough."""
        return 1

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One call."""
        nanoseconds = field.pair(cell.entrant).call("match", cell.mode, cell.size)[0]
        return Round(nanoseconds / 1e3, NO_SAMPLES)
