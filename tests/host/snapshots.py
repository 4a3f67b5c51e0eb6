# SPDX-License-Identifier: BSD-3-Clause
"""Snapshots of processes that nobody runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import ofipy
from ofipy.statistics import Endpoint, Messages, Peer, Process, Snapshot

FIELDS = [field.name for field in dataclasses.fields(ofipy.EndpointStatistics)]


def peer(address: str, moved: int, way: str = "tcp", errors: int = 0) -> Peer:
    """A peer to which so many bytes were sent, in messages of ten bytes."""
    return Peer(address, way, moved // 10, 0, moved, 0, errors)


def endpoint(number: int = 1, provider: str = "tcp", **given: Any) -> Endpoint:
    """An endpoint: counters by name, or fields of the record."""
    fields = {
        "name": f"host:{number}",
        "opened": 5.0,
        "last_progress": 0.0,
        "messages": {},
        "peers": (),
    }
    fields |= {name: given.pop(name) for name in list(given) if name in fields}
    counters = dict.fromkeys(FIELDS, 0) | given
    return Endpoint(number=number, provider=provider, counters=counters, **fields)


def process(pid: int, *endpoints: Endpoint, program: str = "train", ended: bool = False) -> Process:
    """A process."""
    return Process(pid, 1000 + pid, program, "", -1, ended, endpoints)


def snapshot(*processes: Process, unreadable: int = 0) -> Snapshot:
    """One scan."""
    return Snapshot(processes, unreadable)


def messages(total: int, **classes: int) -> Messages:
    """Messages by size: ``c5=3`` are three of 32 to 63 bytes."""
    counts = [0] * 40
    for name, number in classes.items():
        counts[int(name[1:])] = number
    return Messages(tuple(counts), total)


class Scans:
    """Gives one snapshot after the other, the last one again and again."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self._left = list(snapshots)

    def scan(self) -> Snapshot:
        """The next one."""
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]
