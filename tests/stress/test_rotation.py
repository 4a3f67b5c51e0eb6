# SPDX-License-Identifier: BSD-3-Clause
"""Processes that send to each other all the time change to another key one by one, and none is refused."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ofipy.cli.key import new_key

FULL = bool(os.environ.get("OFIPY_STRESS"))
PROCESSES = 50 if FULL else 5
LOAD = 100
"""Connections that all processes together open in a second, beside those of the process that was replaced last."""

Start = Callable[..., Any]


def find_openssl() -> bool:
    try:
        ctypes.CDLL("libssl.so.3")
    except OSError:
        return False
    return True


class Group:
    """The processes, by their ranks; each is replaced by another one at the same address."""

    def __init__(self, start: Start, folder: Path, encryption: str) -> None:
        self.start, self.folder, self.encryption = start, folder, encryption
        self.members: list[Any] = []
        self.generations = [0] * PROCESSES
        self.sent = self.interrupted = 0
        self.failures: list[str] = []
        self.ended: list[Any] = []
        self.spares = [self.start_member() for _ in range(PROCESSES)]

    def start_member(self) -> Any:
        """A process that has no rank yet: Python starts while the others go on."""
        return self.start("member", str(self.folder), PROCESSES, PROCESSES / LOAD, program="rotating.py")

    def publish(self, rank: int) -> None:
        beside = self.folder / f"{rank}.new"
        beside.write_text(f"{self.generations[rank]} {self.members[rank].address}")
        beside.rename(self.folder / str(rank))

    def open_member(self, rank: int, service: str, own: str, *accepted: str) -> Any:
        settings = {
            "OFIPY_AUTH_KEY_FILE": str(self.folder / own),
            "OFIPY_AUTH_KEY_FILE_ACCEPTED": ":".join(str(self.folder / name) for name in accepted),
            "OFIPY_ENCRYPTION": self.encryption,
            # A machine that has no time for a process is no refusal of it.
            "OFIPY_CONNECT_TIMEOUT": "60",
        }
        member = self.spares.pop(0)
        assert member.hear() == "started"
        member.tell([rank, service, settings])
        member.address = member.hear()
        return member

    def open_all(self, own: str) -> None:
        for rank in range(PROCESSES):
            self.members.append(self.open_member(rank, "0", own))
            self.publish(rank)
        for member in self.members:
            member.tell("begin")
        for member in self.members:
            assert member.hear() == "all reached"

    def end_members(self, *ranks: int) -> None:
        for rank in ranks:
            self.generations[rank] += 1
            self.publish(rank)
        for rank in ranks:
            self.members[rank].tell("end")
        for rank in ranks:
            self.hear_end(self.members[rank])

    def hear_end(self, member: Any) -> None:
        sent, interrupted, failures = member.hear()
        self.sent += sent
        self.interrupted += interrupted
        self.failures += failures
        self.ended.append(member)

    def end_all(self) -> None:
        self.end_members(*range(PROCESSES))
        # A process that has closed its endpoint frees the address: nobody waits for the end of its Python before.
        for member in self.ended:
            assert member.end() == 0

    def replace_all(self, own: str, *accepted: str) -> None:
        """One by one; the next one follows when the new process has sent to all the others."""
        self.spares.append(self.start_member())
        for rank in range(PROCESSES):
            service = self.members[rank].address.rpartition(":")[2]
            self.end_members(rank)
            self.members[rank] = self.open_member(rank, service, own, *accepted)
            if rank < PROCESSES - 1:
                self.spares.append(self.start_member())
            self.generations[rank] += 1
            self.publish(rank)
            self.members[rank].tell("begin")
            assert self.members[rank].hear() == "all reached"
            assert not self.failures


@pytest.mark.parametrize("encryption", ["off", "required"])
@pytest.mark.timeout(3000)
def test_processes_change_to_another_key_one_by_one(workers: Start, tmp_path: Path, encryption: str) -> None:
    if encryption == "required" and not find_openssl():
        pytest.skip("libssl.so.3 is not installed")
    for name in ("old", "new"):
        new_key(tmp_path / name)
    group = Group(workers, tmp_path, encryption)
    group.open_all("old")
    group.replace_all("new", "old")
    group.replace_all("new")
    group.end_all()
    print(f"{PROCESSES} processes, {group.sent} connections, {group.interrupted} interrupted, none refused")
    assert group.failures == []
    assert group.sent >= PROCESSES * (PROCESSES - 1) * 3
