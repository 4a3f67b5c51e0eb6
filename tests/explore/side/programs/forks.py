# SPDX-License-Identifier: BSD-3-Clause
"""A fork while another thread is within ofipy, at each of that thread's steps; the child opens endpoints of its own."""

import os
import select
import signal
import threading
from functools import partial

from board import Kind
from pair import Pair
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from programs.storms import send_fresh, warm

__all__ = ["list_programs"]

TARGETS = ("shm", "tcp", "link")
TAG, RECEIVES = 7, 200


def exchange(target: str) -> None:
    """What either process does: open, post so many receives that the core allocates request slots, and exchange."""
    pair = Pair(target)
    receives = [pair.a.trecv(tag=TAG) for _ in range(RECEIVES)]
    send_fresh(pair)
    for request in receives:
        request.cancel()
    pair.close()


def fork_within(target: str, stage: Stage) -> None:
    """The other thread opens, exchanges and closes; at one of its steps this one forks."""
    pair = Pair(target)

    def work() -> None:
        exchange(target)
        stage.board.release_fork()

    thread = threading.Thread(target=work)
    stage.board.arm()
    thread.start()
    stage.board.wait_for_fork()
    pid = os.fork()
    if not pid:
        _run_child(target, pair, stage)
    stage.board.finish_fork()
    try:
        _wait_for(pid)
        thread.join(PATIENCE)
        if thread.is_alive():
            raise Wrong("hang: the thread that was within ofipy during a fork")
        stage.board.disarm()
        send_fresh(pair)
    finally:
        pair.close()


def _run_child(target: str, inherited: Pair, stage: Stage) -> None:
    """What the child may do: open anew; what it has inherited refuses each call."""
    stage.board.disarm()
    status = 1
    try:
        try:
            inherited.a.tsend(b"", inherited.to_b, tag=1)
        except ofipy.ForkedError:
            status = 0
        exchange(target)
    except BaseException:
        status = 2
    os._exit(status)


def _wait_for(pid: int) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        ended = select.select([descriptor], [], [], PATIENCE)[0]
        if not ended:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(descriptor)
    if not ended:
        raise Wrong("hang: the child of a fork, which opens an endpoint of its own")
    if status:
        raise Wrong(f"the child of a fork ended with {os.waitstatus_to_exitcode(status)}")


def list_programs() -> list[Program]:
    """One for each target."""
    for target in TARGETS:
        warm(target)
    kinds = Kind.SYSTEM | Kind.MEMORY
    return [
        Program(f"fork/{target}/open", kinds, partial(fork_within, target), lists_blocks=False)
        for target in TARGETS
    ]
