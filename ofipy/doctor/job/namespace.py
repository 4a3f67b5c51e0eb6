# SPDX-License-Identifier: BSD-3-Clause
"""The processes of one network namespace, which is what a host of a job is: containers of one machine are several."""

import os
from typing import Self

from ofipy.statistics import Reader, Snapshot
from ofipy.statistics.scanner import Scanner

__all__ = ["NamespaceReader"]

_OWN = "/proc/self/ns/net"


class NamespaceReader(Scanner):
    """Reads the pages of the other processes in the network namespace of this one."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._own = read_link(_OWN)

    def scan(self) -> Snapshot:
        """Read every page that there is."""
        found = self._reader.scan()
        here = (each for each in found.processes if each.pid != os.getpid() and self._is_here(each.pid))
        return Snapshot(tuple(here), found.unreadable)

    def _is_here(self, pid: int) -> bool:
        return read_link(f"/proc/{pid}/ns/net") == self._own

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()


def read_link(path: str) -> str | None:
    """Where a link leads; None: it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return None
