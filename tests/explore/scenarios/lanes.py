# SPDX-License-Identifier: BSD-3-Clause
"""Two lanes of ``link``, of which either fails or ends at each step: ``side/programs/lanes.py``."""

from ..build import Build
from ..runner import Runner
from ..scenario import Scenario
from .faulted import FaultScenario, Group

__all__ = ["list_scenarios"]

GROUP = Group({"system": frozenset(("fail", "short", "late")), "await": frozenset(("drop",))})
NOT_COVERED = ("The end of a connection over shared memory while both processes live.",)


def list_scenarios(build: Build) -> list[Scenario]:
    """One scenario, with a process of its own."""
    return [FaultScenario("lanes/link", "faults", not_covered=NOT_COVERED, runner=Runner(build), group=GROUP)]
