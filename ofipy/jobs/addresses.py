# SPDX-License-Identifier: BSD-3-Clause
"""A job whose hosts somebody has written down: one entry for each rank, of which the first says where rank 0 serves."""

import os
from collections.abc import Iterable
from pathlib import Path

from ofipy._base.errors import ConfigError, InvalidArgument
from ofipy._base.limits import whole_number
from ofipy.jobs.launcher import Environment, Found
from ofipy.jobs.rendezvous import Meeting, found, ports

__all__ = ["NAME", "find"]

NAME = "addresses"


def find(addresses: str | os.PathLike[str] | Iterable[str], rank: int | None) -> Found:
    """The job of these addresses.

    Parameters
    ----------
    addresses : path, or iterable of str
        ``host`` or ``host:port`` for each rank; in a file one a line, behind ``#`` what is not read.
    rank : int
        Of this process.

    Raises
    ------
    InvalidArgument
        When there are none, or the rank is none of them.
    ConfigError
        When the file cannot be read, or there are several hosts and no key.
    """
    entries = _read(addresses)
    if not entries:
        raise InvalidArgument(f"addresses={addresses!r}; one for each process is meant", operation="job")
    rank = whole_number("rank", rank, 0, len(entries) - 1, operation="job")
    environment = Environment(NAME, ("rank=", "addresses="), "give every process the same addresses")
    hosts, numbers = zip(*(_split(entry) for entry in entries), strict=True)
    meeting = Meeting(
        run=f"{NAME} {' '.join(entries)}",
        rank=rank,
        size=len(entries),
        server=hosts[0],
        ports=ports(numbers[0], environment),
        several_hosts=len(set(hosts)) > 1,
        host=hosts[rank],
        names=("rank", "len(addresses)"),
    )
    return found(NAME, meeting, environment)


def _read(addresses: str | os.PathLike[str] | Iterable[str]) -> list[str]:
    if not isinstance(addresses, str | os.PathLike):
        return list(addresses)
    try:
        lines = Path(addresses).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"addresses={os.fspath(addresses)!r}: {error}", operation="job") from None
    return [entry for line in lines if (entry := line.partition("#")[0].strip())]


def _split(entry: str) -> tuple[str, int | None]:
    """Host and port; ``[::1]:7471``, ``node:7471``, ``node`` and ``::1`` are understood."""
    host, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.endswith("]")):
        return host, int(port)
    return entry, None
