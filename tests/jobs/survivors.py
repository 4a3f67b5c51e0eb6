# SPDX-License-Identifier: BSD-3-Clause
"""Ranks of a job die during one call after the other; those that are left agree, shrink their group, and continue."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import ofipy

TIMEOUT = 60.0


def make_calls(group: ofipy.Group) -> dict[str, Callable[[], Any]]:
    one, all_blocks = np.zeros(100), np.zeros(100 * group.size)
    long = np.ones(200_000)
    return {
        "barrier": group.barrier,
        "broadcast": lambda: group.broadcast(one),
        "reduce": lambda: group.reduce(one),
        "allreduce": lambda: group.allreduce(long),
        "gather": lambda: group.gather(one, all_blocks if group.rank == 0 else None),
        "scatter": lambda: group.scatter(all_blocks if group.rank == 0 else None, one),
        "allgather": lambda: group.allgather(one, all_blocks),
        "alltoall": lambda: group.alltoall(all_blocks),
        "reduce_scatter": lambda: group.reduce_scatter(all_blocks, one),
        "scan": lambda: group.scan(one),
        "exscan": lambda: group.exscan(one),
        "broadcast_obj": lambda: group.broadcast_obj("text"),
    }


def kill_during(request: Any) -> None:
    del request
    os.kill(os.getpid(), signal.SIGKILL)


def break_group(group: ofipy.Group, kind: str, victim: int) -> None:
    """Make the same call again and again, until the victim's death is noticed."""
    call = make_calls(group)[kind]
    # The victim may be ahead of the others, and its death would break what they still wait for from before.
    group.barrier().wait(timeout=TIMEOUT)
    for number in range(100_000):
        request = call()
        if number == 5 and group.rank == victim:
            kill_during(request)
        request.wait(timeout=TIMEOUT)


def agree_until_dead(group: ofipy.Group, victim: int) -> None:
    """The victim dies while the members agree."""
    group.agree().wait(timeout=TIMEOUT)
    while True:
        request = group.agree()
        if group.rank == victim:
            kill_during(request)
        flag, dead = request.wait(timeout=TIMEOUT)
        assert flag
        if dead:
            return


def main() -> None:
    job = ofipy.job()
    group = job.group()
    for step, kind in enumerate(sys.argv[1].split(",")):
        # The coordinator dies, or the last one, or one between them.
        victim = (0, group.size - 1, group.size // 2)[step % 3]
        if kind == "agree":
            agree_until_dead(group, victim)
        else:
            with contextlib.suppress(ofipy.GroupBroken):
                break_group(group, kind, victim)
        flag, dead = group.agree(group.rank != (victim + 1) % group.size).wait(timeout=TIMEOUT)
        assert not flag
        assert dead == (victim,), (kind, dead)
        smaller = group.shrink().wait(timeout=TIMEOUT)
        assert smaller.size == group.size - 1
        group.close()
        group = smaller
        living = np.full(group.size, job.rank)
        group.allgather(living).wait(timeout=TIMEOUT)
        assert living.tolist() == sorted(set(living.tolist()))
        total = group.allreduce(np.full(3, job.rank)).wait(timeout=TIMEOUT)
        assert total.tolist() == [living.sum()] * 3
    print("left:", group.size, flush=True)
    group.barrier().wait(timeout=TIMEOUT)
    group.close()


main()
