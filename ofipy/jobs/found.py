# SPDX-License-Identifier: BSD-3-Clause
"""Which launcher started this process, by its environment, and why it was none of the others."""

import os
from dataclasses import dataclass

from ofipy._base.errors import ConfigError, FabricError
from ofipy.jobs import own, pmi1, pmix, slurm, torchrun
from ofipy.jobs.launcher import Found

__all__ = ["Search", "search"]

_ORDER = (own, pmix, pmi1, torchrun, slurm)

# Of launchers that give nothing by which to join, unless they are asked to: whoever has one of these is not alone.
_FOREIGN = {
    "FLUX_TASK_RANK": "flux run with its PMI, -o pmi=simple",
    "OMPI_COMM_WORLD_RANK": "prterun of Open MPI 5",
    "PALS_RANKID": "mpiexec --pmi=pmix",
    "JSM_NAMESPACE_RANK": "a launcher with PMIx",
}


@dataclass(frozen=True, slots=True)
class Search:
    """What was looked for."""

    found: Found | None
    """None: no variable of any launcher is set, or `error`."""
    error: FabricError | None
    """Why the launcher cannot be joined whose variables are set."""
    reasons: dict[str, str]
    """Of every launcher in their order, why it was, or was not."""

    def text(self) -> str:
        """The reasons in one sentence."""
        return "; ".join(f"{name}: {reason}" for name, reason in self.reasons.items())


def search() -> Search:
    """Look at the environment, the first launcher of which anything is set wins."""
    found: Found | None = None
    error: FabricError | None = None
    taken: str | None = None
    reasons: dict[str, str] = {}
    for module in _ORDER:
        environment = module.variables()
        if taken is not None:
            seen = "its variables are set too" if environment.is_set() else environment.reason()
            reasons[module.NAME] = f"{seen}; {taken} goes before" if environment.is_set() else seen
            continue
        try:
            found = module.find()
        except FabricError as failure:
            error = failure
        if found is None and error is None:
            reasons[module.NAME] = environment.reason()
            continue
        taken = module.NAME
        reasons[module.NAME] = str(error) if error is not None else "taken"
    return Search(found, error if taken is not None else _foreign(), reasons)


def _foreign() -> FabricError | None:
    """The error of a process that something has started together with others."""
    for name, remedy in _FOREIGN.items():
        if os.environ.get(name):
            return ConfigError(
                f"{name} is set, so a launcher has started this process, and none that ofipy can join",
                operation="job",
                remedy=f"start it with {remedy}, or with ofipy run, or give addresses= and rank=",
            )
    return None
