# SPDX-License-Identifier: BSD-3-Clause
"""Cases of one endpoint over several ways: to a neighbour and to a remote peer, beside the way alone."""

from fabtests.compare.case import Case, Cell, Line
from fabtests.compare.entrants import NEIGHBOUR, OFIPY, REMOTE, Entrant
from fabtests.compare.latency import Latency
from fabtests.compare.windows import Windows

__all__ = ["LinkBandwidth", "LinkLatency"]

# The way that is meant to be taken, and who takes it.
WAYS = {"shm": NEIGHBOUR, "tcp": REMOTE}


class ByWay(Case):
    """Each row twice; the rounds of both, and of the ways alone, alternate."""

    provider = "link"
    peers = tuple(Entrant(OFIPY, way) for way in WAYS)

    def groups(self) -> list[list[Line]]:
        """A group for each size."""
        return [[Line(mode, size, way) for mode in self.modes for way in WAYS] for size in self.sizes]

    def own_cell(self, line: Line) -> Cell:
        """The pair that has been made to go this way."""
        return Cell(WAYS[line.way], line.mode, line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The same over the provider of that way, which nothing else is beside."""
        return {line.way: Cell(Entrant(OFIPY, line.way), line.mode, line.size)}


class LinkLatency(ByWay, Latency):
    """What the choice costs a small message."""

    name = "link-latency"
    modes = ("native", "blocking", "prepared")


class LinkBandwidth(ByWay, Windows):
    """What it costs a large one."""

    name = "link-bandwidth"
    modes = ("array", "domain")
    sizes = (65536, 1 << 20, 4 << 20)
