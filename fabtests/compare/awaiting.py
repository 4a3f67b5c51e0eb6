# SPDX-License-Identifier: BSD-3-Clause
"""The case of event loops: round trips that tasks await."""

from fabtests.compare.case import Cell, Line, Round
from fabtests.compare.entrants import OFIPY, Entrant
from fabtests.compare.field import Field
from fabtests.compare.latency import Latency
from fabtests.compare.statistics import Summary
from fabtests.compare.ways.messages import TASKS

__all__ = ["Await"]

ROUND_TRIPS = 20  # of each task in a chunk


class Await(Latency):
    """Half a round trip of one task, or of each of many, in ofipy's loop and in asyncio's.

    Whether two event loops keep each other awake may be decided as they start. So every round of ofipy's is of a
    fresh pair of processes, and its value is the worst round.
    """

    name = "await"
    provider = "shm"
    modes = ("loop", "loop-100", "await", "await-100")
    sizes = (8,)
    peers = (Entrant("uvloop"), Entrant("asyncio"))

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """As many tasks."""
        return {peer.name: Cell(peer, str(tasks_of(line.mode)), line.size) for peer in self.peers}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """So many round trips that making the tasks, which a chunk begins with, does not count."""
        return max(super().calibrate(field, cell), ROUND_TRIPS)

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """The median of a few chunks, a transfer."""
        if cell.entrant.name == OFIPY:
            field.renew(cell.entrant)
        found = super().run(field, cell, count)
        tasks = tasks_of(cell.mode)
        return Round(found.value / tasks, found.samples / tasks)

    def sum_up_own(self, rounds: list[Round], summary: Summary) -> Summary:
        """The worst start."""
        return Summary(max(each.value for each in rounds), summary.spread, summary.p99, summary.p999)


def tasks_of(mode: str) -> int:
    """How many tasks a mode has, of ofipy's or of a peer."""
    return TASKS if mode.endswith(str(TASKS)) else 1
