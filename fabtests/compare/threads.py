# SPDX-License-Identifier: BSD-3-Clause
"""The case of threads: two of them beside one."""

from fabtests.compare.case import NO_SAMPLES, Case, Cell, Line, Round
from fabtests.compare.entrants import THREADED, Entrant
from fabtests.compare.field import Field
from ofipy.pingpong.plan import fill_time

__all__ = ["Threads"]


class Threads(Case):
    """Messages of two threads together: each with an endpoint of its own domain, or both with the same one."""

    name = "threads"
    metric = "messages_per_sec"
    provider = "shm"
    modes = ("request", "shared")
    sizes = (8,)
    peers = ()
    round_nanoseconds = 100e6  # many turns of the interpreter's switch interval

    @property
    def own(self) -> Entrant:
        """One process has all threads."""
        return Entrant(THREADED, self.provider)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """The same by one thread."""
        return {"one-thread": Cell(self.own, "one-thread", line.size)}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Messages of each thread that fill a round."""
        count = 1000
        taken: int = field.pair(cell.entrant).call("exchange", cell.mode, cell.size, count)[0]
        return fill_time(self.round_nanoseconds, taken / count, least=count)

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One round."""
        threads = 1 if cell.mode == "one-thread" else 2
        taken = field.pair(cell.entrant).call("exchange", cell.mode, cell.size, count)[0]
        return Round(threads * count * 1e9 / taken, NO_SAMPLES)
