# SPDX-License-Identifier: BSD-3-Clause
"""A member of a group, in a process of its own, that dies or is late at each of its steps.

The members that are left end whatever runs, agree who is dead, shrink their group, and have a right result.
"""

import os
import pickle
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from board import Kind
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from ofipy._objects.group import Group
from programs.dying import TARGETS, end_peer, open_endpoint, set_patience, start_peer
from programs.storms import warm

__all__ = ["list_programs"]

HERE = 2
"""Members in this process; the one that dies has the last rank."""
ROOM = 65_536
SHRINKS = 4
LONG = 40_000

Call = Callable[[Group], Any]
# Short ones, long ones, and those in which the last rank only sends, or only receives.
CALLS: Sequence[Call] = (
    lambda group: group.barrier(),
    lambda group: group.allreduce(np.array([group.rank + 1])),
    lambda group: group.broadcast(np.full(LONG, group.rank), root=HERE),
    lambda group: group.allreduce(np.full(LONG, group.rank + 1)),
    lambda group: group.gather(
        np.full(3, group.rank), np.zeros((HERE + 1, 3), np.int64) if group.rank == 0 else None
    ),
    lambda group: group.allgather_obj("x" * 100 * group.rank),
)


def _join(group: Group, rank: int, rows: Sequence[tuple[bytes, int]]) -> None:
    peers = [group.endpoint.insert(ofipy.Address.from_bytes(address)) for address, _ in rows]
    group._join(rank, peers, [number for _, number in rows], [0] * len(rows))


def _row_of(group: Group) -> tuple[bytes, int]:
    return bytes(group.endpoint.address), group.number


def run_member(target: str, stage: Stage, line: socket.socket) -> None:
    """The member that dies: all that the others do, one call after the other."""
    stage.board.arm()
    set_patience()
    endpoint = open_endpoint(target)
    group = Group(endpoint)
    line.sendall(pickle.dumps(_row_of(group)))
    _join(group, HERE, pickle.loads(line.recv(ROOM)))
    for call in CALLS:
        call(group).wait(timeout=PATIENCE)
    group.agree().wait(timeout=PATIENCE)
    smaller = group.shrink().wait(timeout=PATIENCE)
    smaller.allreduce(np.array([1])).wait(timeout=PATIENCE)
    stage.board.disarm()
    line.recv(1)
    endpoint.domain.fabric.close()


def live_on(target: str, stage: Stage) -> None:
    """The members of this process: whatever becomes of the other one."""
    pid, line = start_peer(target, stage, run_member)
    line.settimeout(PATIENCE)
    set_patience()
    groups = [Group(open_endpoint(target)) for _ in range(HERE)]
    endpoints = [group.endpoint for group in groups]
    try:
        try:
            rows = [*map(_row_of, groups), pickle.loads(line.recv(ROOM))]
            line.sendall(pickle.dumps(rows))
        except (EOFError, OSError):
            return
        for rank, group in enumerate(groups):
            _join(group, rank, rows)
        _call_until_broken(groups, stage)
        _go_on(groups, stage)
    finally:
        line.close()
        if not stage.has_fault:
            os.kill(pid, signal.SIGCONT)
        end_peer(pid)
        for endpoint in endpoints:
            endpoint.close(linger=0)
            endpoint.domain.fabric.close()


def _wait_for_all(what: str, requests: Sequence[Any], stage: Stage) -> list[Any]:
    """What each request has as its result; None in place of one whose group broke."""
    results = []
    for request in requests:
        try:
            results.append(request.wait(timeout=PATIENCE))
        except ofipy.TimedOut as error:
            raise Wrong(f"hang: {what}: {error}") from None
        except ofipy.GroupBroken as error:
            if error.ranks not in ((), (HERE,)):
                raise Wrong(f"{what} names members that live: {error}") from None
            stage.notes.append(f"{what}: {error}")
            results.append(None)
    return results


def _call_until_broken(groups: Sequence[Group], stage: Stage) -> None:
    for number, call in enumerate(CALLS):
        try:
            requests = [call(group) for group in groups]
        except ofipy.GroupBroken as error:
            stage.notes.append(f"start of call {number}: {error}")
            return
        results = _wait_for_all(f"call {number}", requests, stage)
        if any(result is None for result in results) and number not in (0, 4):
            return
        if number == 1 and [int(result[0]) for result in results] != [6, 6]:
            raise Wrong(f"the sum is {results}")
        if number == 3 and not all((result == 6).all() for result in results):
            raise Wrong("a long sum is wrong")


def _go_on(groups: Sequence[Group], stage: Stage) -> None:
    answers = _wait_for_all("agree", [group.agree() for group in groups], stage)
    if answers not in ([(True, ())] * HERE, [(True, (HERE,))] * HERE):
        raise Wrong(f"the members agreed on {answers}")
    for _ in range(SHRINKS):
        smaller = _wait_for_all("shrink", [group.shrink() for group in groups], stage)
        if None in smaller or [group.rank for group in smaller] != list(range(HERE)):
            raise Wrong(f"the groups after a shrink are {smaller}")
        groups = smaller
        try:
            requests = [group.allreduce(np.array([1])) for group in groups]
        except ofipy.GroupBroken:
            continue
        totals = _wait_for_all("the last sum", requests, stage)
        if None in totals:
            continue
        if [int(total[0]) for total in totals] != [group.size for group in groups]:
            raise Wrong(f"{groups} have the sums {totals}")
        if not stage.has_fault and groups[0].size != HERE + 1:
            raise Wrong("a member that lives was left out")
        return
    raise Wrong(f"the group breaks after {SHRINKS} shrinks")


def list_programs() -> list[Program]:
    """The group over each target."""
    for target in TARGETS:
        warm(target)
    return [
        Program(
            f"members/{target}/calls", Kind.SYSTEM | Kind.MEMORY, partial(live_on, target), lists_blocks=False
        )
        for target in TARGETS
    ]
