# SPDX-License-Identifier: BSD-3-Clause
"""Series of each running process, which ``ofipy exporter --per-process`` adds.

A process that has ended has no series: its counts stay in the sums of its program. No series falls while its process
runs: the counts of an endpoint that is closed move within the page, and a scan may see them half moved.
"""

from collections import Counter

from ofipy.exporter.family import Family, Rows
from ofipy.exporter.totals import Programs
from ofipy.statistics import Process, Snapshot

__all__ = ["PER_PROCESS_FAMILIES", "EachProcess"]

_LABELS = ("program", "pid", "rank")


def _counter(name: str, help: str, *labels: str) -> Family:
    return Family(f"ofipy_process_{name}_total", "counter", (*_LABELS, *labels), help)


def _level(name: str, help: str) -> Family:
    return Family(f"ofipy_process_{name}", "gauge", _LABELS, help)


MESSAGES = _counter("messages", "With --per-process: messages of a process.", "direction")
BYTES = _counter("bytes", "With --per-process: payload of a process.", "direction")
ERRORS = _counter("operation_errors", "With --per-process: operations that ended with an error.")
ENDPOINTS = _level("endpoints", "With --per-process: endpoints that are open.")
PENDING = _level("pending_operations", "With --per-process: operations in flight or not accepted yet.")
UNEXPECTED = _level("unexpected_messages", "With --per-process: messages without a receive.")
PER_PROCESS_FAMILIES = (MESSAGES, BYTES, ERRORS, ENDPOINTS, PENDING, UNEXPECTED)

_COUNTERS = {
    "sends": (MESSAGES, ("sent",)),
    "receives": (MESSAGES, ("received",)),
    "bytes_sent": (BYTES, ("sent",)),
    "bytes_received": (BYTES, ("received",)),
    "errors": (ERRORS, ()),
}
_LEVELS = {
    "pending": PENDING,
    "backlog": PENDING,
    "unexpected_messages": UNEXPECTED,
    "announced_messages": UNEXPECTED,
}


class EachProcess:
    """What each process has counted, as it was told last.

    Parameters
    ----------
    programs : Programs
        The names of programs.
    """

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._told: dict[tuple[int, int], Counter[str]] = {}  # by pid and start time, the highest values

    def add_rows(self, rows: Rows, snapshot: Snapshot) -> None:
        """Add the rows of the processes that run."""
        before, self._told = self._told, {}
        for process in snapshot.processes:
            if process.ended:
                continue
            identity = (process.pid, process.start_time)
            # The union of two counters has the higher value of each.
            counts = self._told[identity] = sum_up(process) | before.get(identity, Counter())
            rank = "" if process.rank < 0 else str(process.rank)
            labels = (self._programs.name(process.program), str(process.pid), rank)
            for name, (family, directions) in _COUNTERS.items():
                rows.add(family, (*labels, *directions), counts[name])
            for family, value in levels_of(process).items():
                rows.add(family, labels, value)


def sum_up(process: Process) -> Counter[str]:
    """What all of its endpoints have counted, also those that were closed."""
    found: Counter[str] = Counter()
    for endpoint in process.endpoints:
        for name in _COUNTERS.keys() & endpoint.counters.keys():
            found[name] += endpoint.counters[name]
    return found


def levels_of(process: Process) -> dict[Family, int]:
    """What is so now at the endpoints that are open."""
    found = dict.fromkeys((ENDPOINTS, PENDING, UNEXPECTED), 0)
    for endpoint in process.endpoints:
        if endpoint.number:
            found[ENDPOINTS] += 1
            for name, family in _LEVELS.items():
                found[family] += endpoint.counters.get(name, 0)
    return found
