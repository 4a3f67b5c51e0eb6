# SPDX-License-Identifier: BSD-3-Clause
"""Which process goes where: ranks to hosts, and the processes of a host to its cores."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from ofipy._base.errors import InvalidArgument

__all__ = ["Place", "is_here", "place", "share_of_cores"]


@dataclass(frozen=True, slots=True)
class Place:
    """Of one process."""

    rank: int
    host: str
    local_rank: int
    local_size: int


def place(number: int | None, hosts: str | None) -> list[Place]:
    """Where each process goes, by rank; those of one host follow each other.

    Parameters
    ----------
    number : int, optional
        Processes. Default: as many as `hosts` says.
    hosts : str, optional
        Such as ``a,b:2``: hosts with a number get so many, the others the same share of what is left. Default: this
        one.

    Raises
    ------
    InvalidArgument
        When they do not fit each other.
    """
    names, counts = _parse(hosts) if hosts is not None else (["localhost"], [number])
    if number is None:
        number = sum(count if count is not None else 1 for count in counts)
    open_ends = [index for index, count in enumerate(counts) if count is None]
    left = number - sum(count for count in counts if count is not None)
    if left and not (open_ends and left > 0):
        raise InvalidArgument(
            f"{number} processes and --hosts {hosts}; the numbers of the hosts are {number - left} together",
            remedy="leave out -n, or the numbers",
        )
    shares = [count or 0 for count in counts]
    for turn, index in enumerate(open_ends):
        shares[index] = left // len(open_ends) + (turn < left % len(open_ends))
    places: list[Place] = []
    for name, share in zip(names, shares, strict=True):
        places += [Place(len(places) + local, name, local, share) for local in range(share)]
    return places


def _parse(hosts: str) -> tuple[list[str], Sequence[int | None]]:
    names: list[str] = []
    counts: list[int | None] = []
    for entry in hosts.split(","):
        name, colon, count = entry.strip().partition(":")
        if not name or name in names or (colon and not (count.isdigit() and int(count))):
            raise InvalidArgument(f"--hosts {hosts}: {entry!r}; host or host:number is meant, each host once")
        names.append(name)
        counts.append(int(count) if colon else None)
    return names, counts


def is_here(host: str) -> bool:
    """Whether processes of that host are started without ssh."""
    return host in ("localhost", socket.gethostname(), socket.getfqdn())


def share_of_cores(place: Place) -> list[int]:
    """The cores of this host that the process has for itself; none where there are more processes than cores."""
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // place.local_size
    return cores[place.local_rank * each :][:each]
