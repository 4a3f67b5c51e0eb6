# SPDX-License-Identifier: BSD-3-Clause
"""Puts the rows of one scrape together: processes, devices, and not more series than a server likes."""

import threading

from ofipy._requests import Hold
from ofipy.exporter import process_families as families
from ofipy.exporter.device_families import FLOW_EVENTS
from ofipy.exporter.device_rows import add_devices
from ofipy.exporter.family import Family, Rows
from ofipy.exporter.peers import BusiestPeers
from ofipy.exporter.per_process import PER_PROCESS_FAMILIES, EachProcess
from ofipy.exporter.process_rows import add_peers, add_totals
from ofipy.exporter.state import load_state, save_state
from ofipy.exporter.totals import Programs, Totals
from ofipy.host.tree import Tree
from ofipy.statistics import Snapshot
from ofipy.statistics.scanner import Scanner

__all__ = ["MOST_SERIES", "Collector", "shed"]

MOST_SERIES = 5_000
_MOST_PROGRAMS = 50
_SHED_FIRST = (
    *(families.PEER_MESSAGES, families.PEER_BYTES, families.PEER_ERRORS),
    *PER_PROCESS_FAMILIES,
    FLOW_EVENTS,
    families.MESSAGE_SIZES,
)


class Collector:
    """What has been counted. Any thread may use it.

    Parameters
    ----------
    scanner : Scanner, optional
        Processes; None: a recorded machine has none.
    tree : Tree
        The host's devices.
    version : str
        The exporter's.
    peers : int
        Peers with series of their own.
    per_process : bool, optional
        Whether each running process has series of its own.
    state : str, optional
        File that keeps the sums from one exporter to the next.
    most_series : int, optional
        Series of a scrape, at most.

    Raises
    ------
    StateError
        When `state` is the file of something else.
    OSError
        When it cannot be read.
    """

    def __init__(
        self,
        scanner: Scanner | None,
        tree: Tree,
        *,
        version: str,
        peers: int,
        per_process: bool = False,
        state: str | None = None,
        most_series: int = MOST_SERIES,
    ) -> None:
        programs = Programs(_MOST_PROGRAMS)
        self._lock = threading.Lock()  # over all below
        self._scanner = scanner
        self._tree = tree
        self._version = version
        self._totals = Totals(programs)
        self._peers = BusiestPeers(peers, programs)
        self._each = EachProcess(programs) if per_process else None
        self._most_series = most_series
        self._state = state
        if state is not None:
            load_state(state, tree, self._totals, self._peers)

    def scan(self) -> None:
        """Look at the processes, so that one that ends before the next scrape has been seen."""
        with Hold(self._lock):
            self._scan()

    def save(self) -> None:
        """Write the sums to the file that keeps them, if there is one.

        Raises
        ------
        OSError
            When it cannot be written.
        """
        if self._state is not None:
            with Hold(self._lock):
                save_state(self._state, self._tree, self._totals, self._peers)

    def _scan(self) -> Snapshot | None:
        """Add what processes have counted. The lock is held."""
        if self._scanner is None:
            return None
        snapshot = self._scanner.scan()
        self._totals.update(snapshot)
        self._peers.update(snapshot)
        return snapshot

    def collect_rows(self) -> Rows:
        """Everything that is told now."""
        rows = Rows()
        rows.add(families.INFO, (self._version,), 1)
        with Hold(self._lock):
            snapshot = self._scan()
            if snapshot is not None:
                living = sum(not process.ended for process in snapshot.processes)
                rows.add(families.PROCESSES, (), living)
                rows.add(families.UNREADABLE, (), snapshot.unreadable)
                add_totals(rows, self._totals)
                add_peers(rows, self._peers)
                if self._each is not None:
                    self._each.add_rows(rows, snapshot)
            add_devices(rows, self._tree)
        shed(rows, self._most_series)
        return rows


def shed(rows: Rows, most: int) -> None:
    """Leave out whole metrics until so many series are left, and add a row for each that says so.

    Peers go first, then processes, events of flow control, sizes, then whatever has the most series.

    Parameters
    ----------
    rows : Rows
        What a scrape would get.
    most : int
        Series, at most.
    """
    first = [family for family in _SHED_FIRST if family in rows.of]
    dropped: dict[Family, int] = {}
    while sum(map(rows.series, rows.of)) + len(dropped) > most:
        family = first.pop(0) if first else max(rows.of, key=rows.series)
        dropped[family] = rows.series(family)
        del rows.of[family]
    for family, series in dropped.items():
        rows.add(families.DROPPED_SERIES, (family.name,), series)
