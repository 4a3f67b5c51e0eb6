# SPDX-License-Identifier: BSD-3-Clause
"""Sums of what processes have counted, by program and provider. No sum falls while the exporter runs.

The pages of processes are read again and again, and what a process has counted since the last time is added here. So
the counts of a process stay when it ends, also when it was killed: its last values are read from its page.

What is compared is the sum of a process's endpoints of one provider. When an endpoint is closed, its counts move to the
sum of the closed ones, which a scan may see half done. The highest value that was ever seen is therefore what growth
is measured from: a sum that dips for one scan counts nothing twice.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ofipy.exporter.process_families import COUNTERS, LEVELS
from ofipy.statistics import Endpoint, Process, Snapshot

__all__ = ["BYTES", "SIZE", "Group", "Levels", "Programs", "Totals", "by_provider"]

Group = tuple[str, str]
"""Program and provider."""
Key = tuple[str, ...]
"""What was counted: a counter's name; or SIZE with direction, protocol and class; or BYTES with the first two."""
SIZE, BYTES = "size", "bytes"
_LONGEST_NAME = 100
_STALLED_AFTER = 1.0  # seconds
_WAITING = ("unexpected_messages", "announced_messages", "backlog")  # for this program, not for a peer


class Programs:
    """The names of programs that have series of their own; so many, and all others are called ``other``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._named: set[str] = set()

    def name(self, program: str) -> str:
        """What a program is called in labels. Its real name may be anything that a file can be called."""
        program = "".join(each if each.isprintable() else "?" for each in program[:_LONGEST_NAME])
        if program not in self._named and len(self._named) >= self._limit:
            return "other"
        self._named.add(program)
        return program


@dataclass(slots=True)
class Levels:
    """What is so now in the processes of a program, for one provider."""

    of: Counter[str] = field(default_factory=Counter)
    """Sums of levels, by the names of ``ep.stats()``."""
    endpoints: int = 0
    stalled: int = 0

    def add(self, endpoint: Endpoint, now: float) -> None:
        """Add an endpoint that is open."""
        self.endpoints += 1
        for name in LEVELS.keys() & endpoint.counters.keys():
            self.of[name] += endpoint.counters[name]
        self.stalled += is_stalled(endpoint, now)


class Totals:
    """All sums."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self.counts: dict[Group, Counter[Key]] = {}
        self.levels: dict[Group, Levels] = {}
        self._highest: dict[
            tuple[int, int], dict[Key, int]
        ] = {}  # by pid and start time, then provider and key

    def update(self, snapshot: Snapshot) -> None:
        """Add what has been counted since the last time.

        Parameters
        ----------
        snapshot : Snapshot
            What the processes have counted since their endpoints were opened.
        """
        now = time.monotonic()
        before, self._highest, self.levels = self._highest, {}, {}
        for process in snapshot.processes:
            identity = (process.pid, process.start_time)
            highest = self._highest[identity] = before.get(identity, {})
            program = self._programs.name(process.program)
            for provider, endpoints in by_provider(process):
                group = (program, provider)
                total = self.counts.setdefault(group, Counter())
                for key, value in count(endpoints).items():
                    growth = max(value - highest.get((provider, *key), 0), 0)
                    total[key] += growth  # 0, too: a rate begins with the first value that is told
                    if growth:
                        highest[provider, *key] = value
                levels = self.levels.setdefault(group, Levels())
                for endpoint in endpoints:
                    if endpoint.number and not process.ended:
                        levels.add(endpoint, now)

    def dump(self) -> dict[str, Any]:
        """All sums, and what growth is measured from, as a document."""
        return {
            "counts": [[*group, list(counts.items())] for group, counts in self.counts.items()],
            "highest": [[*identity, list(values.items())] for identity, values in self._highest.items()],
        }

    def load(self, document: dict[str, Any], *, same_processes: bool) -> None:
        """Go on with what `dump` has returned.

        Parameters
        ----------
        document : dict
            What an earlier exporter has saved.
        same_processes : bool
            Whether pids and start times still name the same processes.
        """
        for program, provider, counts in document["counts"]:
            group = (self._programs.name(str(program)), str(provider))
            self.counts.setdefault(group, Counter()).update(read_counts(counts))
        if same_processes:
            for pid, start_time, values in document["highest"]:
                self._highest[int(pid), int(start_time)] = read_counts(values)


def read_counts(items: Iterable[Any]) -> dict[Key, int]:
    """Counts out of a document, where a key is a list."""
    return {tuple(map(str, key)): int(value) for key, value in items}


def by_provider(process: Process) -> Iterator[tuple[str, list[Endpoint]]]:
    """The endpoints of a process, those of one provider together."""
    found: dict[str, list[Endpoint]] = {}
    for endpoint in process.endpoints:
        found.setdefault(endpoint.provider, []).append(endpoint)
    return iter(found.items())


def count(endpoints: Iterable[Endpoint]) -> Counter[Key]:
    """The sum of what endpoints have counted."""
    found: Counter[Key] = Counter()
    for endpoint in endpoints:
        for name in COUNTERS.keys() & endpoint.counters.keys():
            found[(name,)] += endpoint.counters[name]
        for (direction, protocol), messages in endpoint.messages.items():
            found[BYTES, direction, protocol] += messages.bytes
            for number, messages_of_size in enumerate(messages.counts):
                if messages_of_size:
                    found[SIZE, direction, protocol, str(number)] += messages_of_size
    return found


def is_stalled(endpoint: Endpoint, now: float) -> bool:
    """Whether work waits in an endpoint whose program has not let it progress for a second."""
    waits = any(endpoint.counters.get(name, 0) for name in _WAITING)
    return waits and now - max(endpoint.last_progress, endpoint.opened) > _STALLED_AFTER
