# SPDX-License-Identifier: BSD-3-Clause
"""Processes that send to each other all the time, and change to another key one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ofipy.cli.key import new_key
from tests.stress.processes import Start

__all__ = ["Group"]


class Group:
    """The processes, by their ranks; each is replaced by another one at the same address.

    Parameters
    ----------
    start : callable
        Starts a process that runs a function of a program of this folder.
    folder : Path
        Of the key files, and of the addresses that the processes read.
    count : int
        Of processes.
    load : float
        Connections that all processes together open in a second, beside those of the one that was replaced last.
    place : dict
        Options of `ofipy.open` for all endpoints.
    encryption : str
        OFIPY_ENCRYPTION of all processes.
    """

    def __init__(
        self, start: Start, folder: Path, count: int, load: float, place: dict[str, str], encryption: str
    ) -> None:
        self.start, self.folder, self.encryption = start, folder, encryption
        self.count, self.period, self.place = count, count / load, place
        self.members: list[Any] = []
        self.generations = [0] * count
        self.sent = self.interrupted = 0
        self.failures: list[str] = []
        self.ended: list[Any] = []
        self.spares = [self.start_member() for _ in range(self.count)]

    def start_member(self) -> Any:
        """A process that has no rank yet: Python starts while the others go on."""
        arguments = (str(self.folder), self.count, self.period, self.place)
        return self.start("member", *arguments, program="rotating.py")

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
        for rank in range(self.count):
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
        self.end_members(*range(self.count))
        # A process that has closed its endpoint frees the address: nobody waits for the end of its Python before.
        for member in self.ended:
            assert member.end() == 0

    def replace_all(self, own: str, *accepted: str) -> None:
        """One by one; the next one follows when the new process has sent to all the others."""
        self.spares.append(self.start_member())
        for rank in range(self.count):
            service = self.members[rank].address.rpartition(":")[2]
            self.end_members(rank)
            self.members[rank] = self.open_member(rank, service, own, *accepted)
            if rank < self.count - 1:
                self.spares.append(self.start_member())
            self.generations[rank] += 1
            self.publish(rank)
            self.members[rank].tell("begin")
            assert self.members[rank].hear() == "all reached"
            assert not self.failures

    def change_key(self) -> str:
        """Replace all twice: the new key beside the old one, then alone. Returns what was done, in a sentence."""
        for name in ("old", "new"):
            new_key(self.folder / name)
        self.open_all("old")
        self.replace_all("new", "old")
        self.replace_all("new")
        self.end_all()
        assert self.failures == []
        assert self.sent >= self.count * (self.count - 1) * 3
        return (
            f"{self.count} processes, {self.sent} connections, {self.interrupted} interrupted, none refused"
        )
