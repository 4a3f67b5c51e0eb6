# SPDX-License-Identifier: BSD-3-Clause
"""The case of many senders: how much one receiver gets, and whether each of them has its share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fabtests.base.fairness import jain
from fabtests.compare.case import NO_SAMPLES, Case, Cell, Round
from fabtests.compare.crowd import SENDERS
from fabtests.compare.entrants import CROWD, MPI_CROWD, Entrant
from fabtests.compare.field import Field
from ofipy.pingpong.pair import Pair

__all__ = ["FanIn"]


class FanIn(Case):
    """Messages a second of 63 senders to one receiver, which has a core of its own."""

    name = "fan-in"
    metric = "messages_per_sec"
    provider = "shm"
    modes = ("batch",)
    sizes = (8,)
    peers = (MPI_CROWD,)

    @property
    def own(self) -> Entrant:
        """As many processes."""
        return CROWD

    def calibrate(self, field: Field, cell: Cell) -> int:
        """The time is fixed."""
        return 1

    def run(self, field: Field, cell: Cell, count: int) -> Round:
        """One round, with the fairness that it found."""
        numbers = [(max(0, rank - 1),) for rank in range(SENDERS + 1)]
        crowd = field.pair(cell.entrant)
        assert isinstance(crowd, Pair), "workers, not programs"
        counts, seconds = crowd.call_each("fan_in", numbers)[0]
        facts = {"jain": jain(counts), "starved": int(np.sum(counts == 0))}
        return Round(float(counts.sum()) / seconds, NO_SAMPLES, facts)

    def sum_up_facts(self, rounds: list[Round]) -> Mapping[str, Any]:
        """The worst of the rounds."""
        return {
            "jain": round(min(each.facts["jain"] for each in rounds), 4),
            "starved": max(each.facts["starved"] for each in rounds),
        }
