# SPDX-License-Identifier: BSD-3-Clause
"""Who may take part, and what it takes to start each."""

import importlib.util
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "LIBFABRIC",
    "MATCHER",
    "OFIPY",
    "SHM_PEERS",
    "TCP_PEERS",
    "Absent",
    "Entrant",
    "Recipe",
    "recipe_of",
]

OFIPY, MATCHER, LIBFABRIC = "ofipy", "matcher", "libfabric"
INSTALL = "pip install ofipy[bench]"
PEERS = "fabtests.compare.peers"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A contender and how it moves its bytes."""

    name: str
    over: str = ""
    """For ofipy a provider, for a peer ``shm`` or ``tcp``; empty where there is one way only."""

    def __str__(self) -> str:
        return f"{self.name} over {self.over}" if self.over else self.name


SHM_PEERS = tuple(Entrant(name, "shm") for name in ("mpi4py", LIBFABRIC, "multiprocessing", "pyzmq"))
TCP_PEERS = (
    Entrant("socket"),
    *(Entrant(name, "tcp") for name in (LIBFABRIC, "mpi4py", "multiprocessing", "pyzmq")),
)


@dataclass(frozen=True, slots=True)
class Absent(Exception):
    """A peer that cannot take part."""

    reason: str
    """One sentence, with the remedy."""

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the two sides of a contender are started."""

    contender: str
    """``module:class``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of that class."""
    module: str | None = None
    """What must be installed."""
    under_mpi: bool = False
    """The sides are ranks of ``mpiexec``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of both processes."""

    def launcher(self) -> list[str]:
        """The command that starts both processes, empty where they are children of ours.

        Raises
        ------
        Absent
            When it is missing, or the package is.
        """
        if self.module is not None and importlib.util.find_spec(self.module) is None:
            raise Absent(f"not installed: {INSTALL}")
        return find_mpiexec() if self.under_mpi else []


# MPICH keeps ranks of one host on shared memory unless told otherwise; the wheel's takes UCX before libfabric.
MPI_OVER_TCP = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}

RECIPES = {
    Entrant("attach"): Recipe(f"{PEERS}.attach_peer:Attach"),
    Entrant("socket"): Recipe(f"{PEERS}.socket_peer:Socket"),
    Entrant("multiprocessing", "shm"): Recipe(
        f"{PEERS}.multiprocessing_peer:Multiprocessing", {"family": "AF_UNIX"}
    ),
    Entrant("pyzmq", "shm"): Recipe(f"{PEERS}.pyzmq_peer:PyZmq", {"transport": "ipc"}, module="zmq"),
    Entrant("mpi4py", "shm"): Recipe(
        f"{PEERS}.mpi4py_peer:Mpi", {"over": "shm"}, module="mpi4py", under_mpi=True
    ),
    Entrant("multiprocessing", "tcp"): Recipe(
        f"{PEERS}.multiprocessing_peer:Multiprocessing", {"family": "AF_INET"}
    ),
    Entrant("pyzmq", "tcp"): Recipe(f"{PEERS}.pyzmq_peer:PyZmq", {"transport": "tcp"}, module="zmq"),
    Entrant("mpi4py", "tcp"): Recipe(
        f"{PEERS}.mpi4py_peer:Mpi",
        {"over": "tcp"},
        module="mpi4py",
        under_mpi=True,
        environment=MPI_OVER_TCP,
    ),
}


def recipe_of(entrant: Entrant) -> Recipe:
    """How to start it; whatever ofipy itself runs over is named by the entrant."""
    if entrant.name == OFIPY:
        return Recipe("fabtests.compare.ofipy_side:Ofipy", {"provider": entrant.over})
    if entrant.name == LIBFABRIC:
        return Recipe(f"{PEERS}.libfabric_peer:Libfabric", {"over": entrant.over})
    return RECIPES[entrant]


def find_mpiexec() -> list[str]:
    """MPICH's launcher: beside this Python, where the wheel puts it, or on the PATH.

    Raises
    ------
    Absent
        When there is none. Its full name is asked for, since other libraries install an ``mpiexec`` too.
    """
    beside = Path(sys.executable).parent / "mpiexec.hydra"
    found = str(beside) if beside.exists() else shutil.which("mpiexec.hydra")
    if found is None:
        raise Absent(f"MPICH's mpiexec.hydra is missing: {INSTALL}")
    return [found, "-n", "2"]
