# SPDX-License-Identifier: BSD-3-Clause
"""The case of executors: tasks that do nothing, and tasks with a large argument."""

from fabtests.compare.case import NO_SAMPLES, Case, Cell, Line, Round
from fabtests.compare.entrants import DASK_TASKS, MPI_TASKS, TASKS_OF_OFIPY, Entrant
from fabtests.compare.field import Field
from fabtests.compare.tasks import TASKS
from ofipy.pingpong.plan import fill_time

__all__ = ["Executors"]

LARGE = 64 << 20
_FIRST = {TASKS: 200}
"""Tasks by which a round is planned; of large arguments one."""


class Executors(Case):
    """Tasks a second of one executor with one worker, and the bandwidth of their arguments."""

    name = "executor"
    metric = "tasks_per_sec"
    provider = "link"
    modes = (TASKS, "argument-64m")
    sizes = (8, LARGE)
    peers = (MPI_TASKS, DASK_TASKS)
    round_nanoseconds = 500e6

    @property
    def own(self) -> Entrant:
        """An executor and a process that joins it."""
        return TASKS_OF_OFIPY

    def metric_of(self, mode: str) -> str:
        """Of large arguments the bytes count."""
        return self.metric if mode == TASKS else "mb_per_sec"

    def groups(self) -> list[list[Line]]:
        """Each mode has its size."""
        return [[Line(mode, size)] for mode, size in zip(self.modes, self.sizes, strict=True)]

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """They do the same."""
        return {peer.name: Cell(peer, line.mode, line.size) for peer in self.peers}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Tasks that fill a round."""
        count = _FIRST.get(cell.mode, 1)
        taken = _measure(field, cell, count)
        return fill_time(self.round_nanoseconds, taken / count, least=count)

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One round."""
        taken = _measure(field, cell, count)
        done = count if cell.mode == TASKS else count * cell.size / 1e6
        return Round(done * 1e9 / taken, NO_SAMPLES)


def _measure(field: Field, cell: Cell, count: int) -> int:
    """Nanoseconds of so many tasks, as the first side has them."""
    taken: int = field.pair(cell.entrant).call("measure", cell.mode, cell.size, count)[0]
    return taken
