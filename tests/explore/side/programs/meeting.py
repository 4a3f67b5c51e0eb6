# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a job that meet, here as threads: each call of theirs, and of rank 0's server, fails or is late.

Each rank gets what all have put, at each fence, or an error that says why; no rank gets anything else.
"""

import os
import threading
from functools import partial
from typing import Any

from board import Kind
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from ofipy._base.binding import lib
from ofipy.jobs import rendezvous
from ofipy.jobs.launcher import FENCES, Deadline
from programs.lanes import listening
from programs.storms import warm

__all__ = ["list_programs"]

SIZE = 2
SECONDS = PATIENCE / 3
"""For the meeting, and for each fence; the server takes two more to say who is missing."""
KEY = b"k" * 32
PORTS = 16
FIRST = 20_000
"""Runs side by side look for their servers at ports of their own."""
TARGETS = ("shm", "tcp", "link")


class Member:
    """One rank: meets the others, and goes through all fences."""

    def __init__(self, meeting: rendezvous.Meeting, key: bytes | None) -> None:
        self.got: list[dict[str, bytes]] = []
        self.error: BaseException | None = None
        self._meeting, self._key = meeting, key
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            member = rendezvous.Rendezvous(self._meeting, self._key, Deadline(SECONDS))
            try:
                for number in range(FENCES):
                    values = {str(member.rank): _value(member.rank, number)}
                    self.got.append(member.fence(values, map(str, range(SIZE)), Deadline(SECONDS)))
            finally:
                member.close()
        except BaseException as error:
            self.error = error


def _value(rank: int, fence: int) -> bytes:
    return b"of rank %d at fence %d" % (rank, fence)


def meet(target: str, stage: Stage) -> None:
    """All ranks at once."""
    if target == "tcp":
        # As between hosts: no shared memory.
        rendezvous.open_endpoint = lambda *place, provider: ofipy.open(*place, provider=target)  # type: ignore[attr-defined]
    first = FIRST + os.getpid() % 1000 * PORTS
    lib.ofp_param_set(b"CONNECT_TIMEOUT", b"1")
    with listening():
        stage.board.arm()
        members = [
            Member(
                rendezvous.Meeting(
                    run="explored",
                    rank=rank,
                    size=SIZE,
                    server="localhost",
                    ports=range(first, first + PORTS),
                    several_hosts=False,
                    host="here",
                    names=("RANK", "SIZE"),
                ),
                None if target == "shm" else KEY,
            )
            for rank in range(SIZE)
        ]
        for member in members:
            member.thread.join(PATIENCE)
        stage.board.disarm()
        for rank, member in enumerate(members):
            _check(stage, rank, member)


def _check(stage: Stage, rank: int, member: Member) -> None:
    if member.thread.is_alive():
        raise Wrong(f"hang: rank {rank} is left")
    for number, got in enumerate(member.got):
        if got != {str(each): _value(each, number) for each in range(SIZE)}:
            raise Wrong(f"rank {rank} got {got} at fence {number}")
    if member.error is None:
        return
    stage.notes.append(f"rank {rank}: {member.error!r}")
    if not stage.has_fault or not isinstance(member.error, ofipy.FabricError | OSError | MemoryError):
        raise Wrong(f"rank {rank} ends with {type(member.error).__name__}: {member.error}") from member.error


def list_programs() -> list[Program]:
    """Within a host, between hosts, and both."""
    programs: list[Any] = []
    for target in TARGETS:
        warm(target)
        programs.append(
            Program(f"meeting/{target}/job", Kind.SYSTEM, partial(meet, target), lists_blocks=False)
        )
    return programs
