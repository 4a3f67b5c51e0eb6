# SPDX-License-Identifier: BSD-3-Clause
"""Slurm without PMI (``srun --mpi=none``): its variables, and our rendezvous on the first node of the step."""

import re
import socket

from ofipy.jobs.launcher import Environment, Found
from ofipy.jobs.rendezvous import Meeting, found, ports

__all__ = ["NAME", "expand", "find"]

NAME = "Slurm"

_NAMES = ("SLURM_PROCID", "SLURM_NTASKS")


def variables() -> Environment:
    """Those that say that it is this."""
    return Environment(
        NAME,
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"),
        "start the program with srun (srun -n 1 for one process), or unset SLURM_PROCID and SLURM_NTASKS",
    )


def find() -> Found | None:
    """The launcher, None when nothing of it is set.

    Raises
    ------
    ConfigError
        When its variables are half set, as in a batch script before ``srun``, or there are several hosts and no key.
    """
    environment = variables()
    if not environment.is_set():
        return None
    rank, size = environment.rank_and_size(("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"))
    nodes = expand(environment.text("SLURM_STEP_NODELIST"))
    if not nodes:
        raise environment.wrong("SLURM_STEP_NODELIST names no node")
    job, step = environment.text("SLURM_JOB_ID"), environment.optional("SLURM_STEP_ID") or "0"
    meeting = Meeting(
        run=f"{NAME} {job}.{step}",
        rank=rank,
        size=size,
        server=nodes[0],
        ports=ports(None, environment),
        several_hosts=len(nodes) > 1,
        host=environment.optional("SLURMD_NODENAME") or socket.gethostname(),
        names=_NAMES,
    )
    return found(NAME, meeting, environment)


def expand(text: str) -> list[str]:
    """The nodes of Slurm's short form, such as ``a[01-03,7]-ib,b``."""
    nodes: list[str] = []
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[]*)(?:\[([^\]]*)\])?", item):
            names = [name + plain + number for name in names for number in _numbers(ranges)]
        nodes += names
    return nodes


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        first, _, last = item.partition("-")
        if not last:
            numbers.append(first)
        elif first.isdigit() and last.isdigit():
            numbers += [str(each).zfill(len(first)) for each in range(int(first), int(last) + 1)]
    return numbers
