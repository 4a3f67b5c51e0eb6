# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a job that meet, here as threads: each call of theirs, and of rank 0's server, fails or is late.

Each rank gets what all have put, at each fence, or an error that says why; no rank gets anything else. The server says
of nobody that it did not come before the time for that is over.
"""

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
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

SECONDS = PATIENCE / 3
"""For the meeting, and for each fence; the server takes two more to say who is missing."""
KEY = b"k" * 32
PORTS = 16
FIRST = 20_000
"""Runs side by side look for their servers at ports of their own."""


@dataclass(frozen=True)
class Shape:
    """What the programs of a group differ in."""

    targets: tuple[str, ...]
    size: int
    length: int
    """Bytes of what a rank puts."""
    queue: int | None
    """Answers of the server that are under way at once; None: as many as it has."""
    has_met: bool
    """Faults come once all have met."""


SHAPES = {
    "meeting": Shape(("shm", "tcp", "link"), 2, 20, None, False),
    # Answers that stay in the queue until they are received: over tcp they are sent at once.
    "fences": Shape(("shm", "link"), 4, 6000, 1, True),
}


class Heartbeat:
    """A thread that ought to run every 10 ms: how long the machine let nobody run.

    The patience of a job is real time, and this machine may have none for its processes.
    """

    PAUSE = 0.01
    TOO_LATE = SECONDS / 4

    def __init__(self) -> None:
        self._late = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        begin = time.monotonic()
        while not self._over.wait(self.PAUSE):
            end = time.monotonic()
            self._late += end - begin - self.PAUSE
            begin = end

    @property
    def is_starved(self) -> bool:
        """Whether so much of the patience was taken that no rank can be blamed."""
        return self._late > self.TOO_LATE


class Gate:
    """Where ranks that have met wait for each other without the server, if their shape says so."""

    def __init__(self, shape: Shape, stage: Stage) -> None:
        waiting = shape.size if shape.has_met else 1
        self._gate = threading.Barrier(waiting, stage.board.arm if shape.has_met else None)

    def wait(self) -> None:
        """Wait for all, or until one of them ends."""
        with suppress(threading.BrokenBarrierError):
            self._gate.wait(PATIENCE)

    def open(self) -> None:
        """Nobody waits any more."""
        self._gate.abort()


class Member:
    """One rank: meets the others, and goes through all fences."""

    def __init__(self, meeting: rendezvous.Meeting, key: bytes | None, length: int, gate: Gate) -> None:
        self.got: list[dict[str, bytes]] = []
        self.error: BaseException | None = None
        self.failed_at = 0.0
        self._meeting, self._key, self._length, self._gate = meeting, key, length, gate
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            member = rendezvous.Rendezvous(self._meeting, self._key, Deadline(SECONDS))
            try:
                self._gate.wait()
                for number in range(FENCES):
                    values = {str(member.rank): _value(member.rank, number, self._length)}
                    wanted = map(str, range(member.size))
                    self.got.append(member.fence(values, wanted, Deadline(SECONDS)))
            finally:
                self._gate.open()
                member.close()
        except BaseException as error:
            self.error, self.failed_at = error, time.monotonic()


def _value(rank: int, fence: int, length: int) -> bytes:
    return (b"of rank %d at fence %d" % (rank, fence)).ljust(length)


def meet(target: str, shape: Shape, stage: Stage) -> None:
    """All ranks at once."""

    def open_endpoint(*place: int, provider: str) -> Any:
        # tcp as between hosts: no shared memory. Who opens at a port is the server.
        return ofipy.open(
            *place, provider="tcp" if target == "tcp" else provider, tx_size=shape.queue if place else None
        )

    rendezvous.open_endpoint = open_endpoint  # type: ignore[assignment]
    first = FIRST + os.getpid() % 1000 * PORTS
    lib.ofp_param_set(b"CONNECT_TIMEOUT", b"1")
    gate, begin = Gate(shape, stage), time.monotonic()
    with listening(), Heartbeat() as heart:
        if not shape.has_met:
            stage.board.arm()
        members = [
            Member(
                rendezvous.Meeting(
                    run="explored",
                    rank=rank,
                    size=shape.size,
                    server="localhost",
                    ports=range(first, first + PORTS),
                    several_hosts=False,
                    host="here",
                    names=("RANK", "SIZE"),
                ),
                None if target == "shm" else KEY,
                shape.length,
                gate,
            )
            for rank in range(shape.size)
        ]
        for member in members:
            member.thread.join(PATIENCE)
        stage.board.disarm()
        for rank, member in enumerate(members):
            if heart.is_starved and isinstance(member.error, ofipy.TimedOut):
                stage.notes.append(f"rank {rank}: {member.error!r}, and the machine ran nobody")
                continue
            _check(stage, rank, member, shape)
            if member.failed_at < begin + SECONDS:
                _check_patience(member)


def _check(stage: Stage, rank: int, member: Member, shape: Shape) -> None:
    if member.thread.is_alive():
        raise Wrong(f"hang: rank {rank} is left")
    for number, got in enumerate(member.got):
        if got != {str(each): _value(each, number, shape.length) for each in range(shape.size)}:
            shown = {name: value[:20] for name, value in got.items()}
            raise Wrong(f"rank {rank} got {shown} at fence {number}")
    if member.error is None:
        return
    stage.notes.append(f"rank {rank}: {member.error!r}")
    if not stage.has_fault or not isinstance(member.error, ofipy.FabricError | OSError | MemoryError):
        raise Wrong(f"rank {rank} ends with {type(member.error).__name__}: {member.error}") from member.error


def _check_patience(member: Member) -> None:
    """The error of a member comes before the server's time is over, whenever that began."""
    if isinstance(member.error, ofipy.TimedOut) and "refuses this process" in str(member.error):
        raise Wrong(f"the server gives up too early: {member.error}") from member.error


def list_programs() -> list[Program]:
    """Within a host, between hosts, and both."""
    programs: list[Program] = []
    for group, shape in SHAPES.items():
        for target in shape.targets:
            warm(target)
            programs.append(
                Program(
                    f"{group}/{target}/job", Kind.SYSTEM, partial(meet, target, shape), lists_blocks=False
                )
            )
    return programs
