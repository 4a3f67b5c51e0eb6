# SPDX-License-Identifier: BSD-3-Clause
"""The case of atomic operations on the other side's memory."""

from fabtests.compare.case import Cell, Line
from fabtests.compare.entrants import MPI, UCX
from fabtests.compare.latency import Latency
from fabtests.compare.ucx import FETCH_ADD

__all__ = ["AtomicLatency"]


class AtomicLatency(Latency):
    """How long one fetch-add takes on memory whose owner sleeps; UCX's owner looks for work all the time."""

    name = "atomic-latency"
    provider = "shm"
    modes = ("native", "prepared", "blocking")
    sizes = (8,)
    peers = (MPI, UCX)
    caps = ("rma", "atomic")
    transfers = 1

    def own_cell(self, line: Line) -> Cell:
        """A fetch-add in this mode."""
        return Cell(self.own, f"{FETCH_ADD}-{line.mode}", line.size)

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """Beside the peers' fetch-adds stands a write of our own, until it is delivered."""
        peers = {peer.name: Cell(peer, FETCH_ADD, line.size) for peer in self.peers}
        return {"write": Cell(self.own, "write-delivered", line.size), **peers}
