# SPDX-License-Identifier: BSD-3-Clause
"""The case of collectives: a group of processes, over each provider that has groups."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fabtests.compare.case import NO_SAMPLES, Case, Cell, Line, Round
from fabtests.compare.entrants import GLOO_TEAM, MPI_SERIAL_TEAM, MPI_TEAM, TEAMS_OF_OFIPY, Entrant
from fabtests.compare.field import Field
from fabtests.compare.team import ARRAY, DOMAIN, KERNEL, KINDS, NATIVE, PREPARED, TAGGED, kind_of
from ofipy.pingpong.plan import fill_time

__all__ = ["Collectives"]

SIZES = (8, 65536, 16 << 20)
WAYS = tuple(TEAMS_OF_OFIPY)
_FIRST = 4
"""Calls by which a round is planned."""
_OF_GLOO = ("barrier", "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather")


class Collectives(Case):
    """Microseconds of a collective; ``kernel-sum`` is the reduction alone, beside numpy's addition.

    Parameters
    ----------
    ranks : int
        Members of a group.
    """

    name = "collectives"
    metric = "usec_per_transfer"
    provider = "shm"
    modes = (
        *KINDS,
        *(NATIVE + kind for kind in KINDS),
        *(PREPARED + kind for kind in KINDS),
        *(DOMAIN + kind for kind in KINDS[1:]),
        KERNEL,
    )
    sizes = (0, *SIZES)
    round_nanoseconds = 50e6

    def __init__(self, *, ranks: int = 2) -> None:
        super().__init__()
        self.ranks = ranks
        self.peers = (self._team(MPI_TEAM), self._team(MPI_SERIAL_TEAM), self._team(GLOO_TEAM))

    def _team(self, entrant: Entrant) -> Entrant:
        return replace(entrant, ranks=self.ranks)

    def groups(self) -> list[list[Line]]:
        """A barrier has no bytes; the reduction alone no provider but the case's."""
        modes = [mode for mode in self.modes if not mode.endswith("barrier") and mode != KERNEL]
        barriers = [mode for mode in self.modes if mode.endswith("barrier")]
        groups = [[Line(mode, size, way) for mode in modes] for way in WAYS for size in SIZES]
        groups += [[Line(mode, 0, way) for mode in barriers] for way in WAYS]
        return [*groups, [Line(KERNEL, SIZES[-1], WAYS[0])]]

    def own_cell(self, line: Line) -> Cell:
        """A group over the row's provider."""
        return Cell(self._team(TEAMS_OF_OFIPY[line.way]), line.mode, line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """MPI's ranks share memory, so they are no peers of tcp; gloo's never do."""
        if line.mode == KERNEL:
            return {"numpy": Cell(self._team(MPI_TEAM), KERNEL, line.size)}
        kind, cells = kind_of(line.mode), {}
        if line.way != "tcp":
            cells = {peer.name: Cell(peer, kind, line.size) for peer in self.peers[:2]}
        if kind in _OF_GLOO and line.mode in KINDS:
            cells[GLOO_TEAM.name] = Cell(self.peers[2], kind, line.size)
        own = self.own_cell(line)
        if line.mode == NATIVE + "allreduce":
            cells[TAGGED] = replace(own, mode=TAGGED)
        if line.mode == "broadcast" and line.size == SIZES[-1] and self.ranks == 2:
            cells[ARRAY] = replace(own, mode=ARRAY)
        return cells

    def provider_of(self, line: Line) -> str:
        """The row's own."""
        return line.way

    def sum_up_facts(self, rounds: list[Round]) -> Mapping[str, Any]:
        """How many members."""
        return {"ranks": self.ranks}

    def calibrate(self, field: Field, cell: Cell) -> int:
        """Calls that fill a round."""
        taken = _measure(field, cell, _FIRST)
        return fill_time(self.round_nanoseconds, taken / _FIRST, least=_FIRST)

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One round."""
        return Round(_measure(field, cell, count) / count / 1e3, NO_SAMPLES)


def _measure(field: Field, cell: Cell, count: int) -> int:
    """Nanoseconds of so many calls, as the first side has them."""
    taken: int = field.pair(cell.entrant).call("measure", cell.mode, cell.size, count)[0]
    return taken
