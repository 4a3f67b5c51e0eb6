# SPDX-License-Identifier: BSD-3-Clause
"""Connections that end as soon as they were accepted, and receives that are dropped at each step of their message."""

import gc
import os
from functools import partial
from threading import Thread
from time import sleep

from board import Action, Kind
from numbered import message, number_of
from pair import PATIENCE as LONG
from pair import info_of, open_domain
from program import PATIENCE, Program, Stage, Wrong

import ofipy
from programs.storms import warm

__all__ = ["list_programs"]

TAG = 7
SIZES = (16, 60_000, 2_000_000)


def accept_and_end(target: str, stage: Stage) -> None:
    """Who was accepted gets the acceptance first, whatever is late, and then the end."""
    server, client = open_domain(target), open_domain(target)
    try:
        listener = server.passive_endpoint()
        listener.listen()
        endpoint = client.endpoint().enable()
        stage.board.arm()
        asking = endpoint.connect(listener.address, data=b"ask")
        accepted = listener.wait(timeout=LONG)
        theirs = accepted.accept(data=b"yes")
        theirs.shutdown()
        answer = asking.wait(timeout=PATIENCE)
        stage.board.disarm()
        if answer != b"yes":
            raise Wrong(f"the client was accepted, and was told {answer!r}")
        try:
            endpoint.trecv(tag=TAG).wait(timeout=PATIENCE)
        except ofipy.TimedOut:
            raise Wrong("hang: the end of a connection was not noticed") from None
        except ofipy.FabricError:
            pass
    finally:
        stage.board.disarm()
        client.fabric.close()
        server.fabric.close()


def drop_receive(target: str, stage: Stage) -> None:
    """A message whose trecv() was dropped, at whatever step, is the next receive's, of either kind."""
    domains = [ofipy.Fabric(info_of(target)).domain(progress="manual") for _ in range(2)]
    here, there = (domain.endpoint().enable() for domain in domains)
    to_here = there.insert(here.address)
    try:
        for number, size in enumerate(SIZES, start=1):
            _drop_one(stage, here, there, to_here, number, size)
    finally:
        stage.board.disarm()
        for domain in domains:
            domain.fabric.close()


def _drop_one(
    stage: Stage, here: ofipy.Endpoint, there: ofipy.Endpoint, to_here: ofipy.Peer, number: int, size: int
) -> None:
    stage.board.arm()
    sending = there.tsend(message(number, size), to_here, tag=TAG)
    dropped = here.trecv(tag=TAG)
    is_dropped = False
    for _ in range(200):
        if stage.board.reach(Kind.AWAIT, f"message of {size}") == Action.DROP:
            is_dropped = True
            break
        sending.test()
        if dropped.test():
            break
    stage.board.disarm()
    if not is_dropped:
        if number_of(dropped.wait(timeout=PATIENCE).data) != number:
            raise Wrong("another message came")
        sending.wait(timeout=PATIENCE)
        return
    del dropped
    gc.collect()
    buffer = bytearray(size)
    into = here.trecv_into(buffer, tag=TAG)
    for _ in range(100_000):
        sending.test()
        if into.test():
            break
    if not into.done:
        raise Wrong(f"lost message: of {size} bytes, whose trecv() was dropped")
    if number_of(buffer) != number:
        raise Wrong("another message came")
    sending.wait(timeout=PATIENCE)


def start_sleeper(endpoint: ofipy.Endpoint) -> tuple[ofipy.Request, Thread]:
    """A receive, and a thread that has fallen asleep waiting for it."""
    waiting = endpoint.trecv(tag=TAG)
    thread, before = Thread(target=waiting.wait), endpoint.stats().sleeps
    thread.start()
    while endpoint.stats().sleeps == before:
        sleep(0.001)
    return waiting, thread


def delay_operation(target: str, stage: Stage) -> None:
    """An operation that a hook delays leaves in time, although a thread of the domain fell asleep before."""
    domain = ofipy.Fabric(info_of(target), hooks=["fault:delay=20ms"]).domain(progress="manual")
    other = ofipy.Fabric(info_of(target)).domain(progress="auto")
    here, there = domain.endpoint().enable(), other.endpoint().enable()
    to_there, to_here = here.insert(there.address), there.insert(here.address)
    try:
        there.tsend(b"first", to_here, tag=1)
        here.trecv(tag=1).wait()
        stage.board.arm()
        _, sleeper = start_sleeper(here)
        coming = there.trecv(tag=TAG)
        here.tsend(b"delayed", to_there, tag=TAG)
        coming.wait()
        there.tsend(b"end", to_here, tag=TAG).wait()
        sleeper.join()
        stage.board.disarm()
    finally:
        stage.board.disarm()
        domain.fabric.close()
        other.fabric.close()


def await_absent_peer(target: str, stage: Stage) -> None:
    """A peer that is not there yet is tried again, although a thread of the domain fell asleep before."""
    service = f"absent-{os.getpid()}" if target == "shm" else None
    with ofipy.open(service, provider=target) as first:
        address = first.address
        service = service or str(address).rpartition(":")[2]
    domain = ofipy.Fabric(info_of(target)).domain(progress="manual")
    here = domain.endpoint().enable()
    try:
        stage.board.arm()
        _, sleeper = start_sleeper(here)
        asking = Thread(target=here.insert, args=(address,), kwargs={"wait": 60})
        asking.start()
        # Longer than the first pauses between two tries.
        sleep(0.02)
        with ofipy.open(service, provider=target) as there:
            asking.join()
            there.tsend(b"end", there.insert(here.address), tag=TAG).wait()
            sleeper.join()
        stage.board.disarm()
    finally:
        stage.board.disarm()
        domain.fabric.close()


def list_programs() -> list[Program]:
    """Each over the targets that have it."""
    for target in ("shm", "tcp", "link", "rdmfake", "tcp/msg"):
        warm(target)
    return [
        Program("ends/tcp-msg/accept", Kind.SYSTEM, partial(accept_and_end, "tcp/msg"), lists_blocks=False),
        *(
            Program(f"drop/{target}/trecv", Kind.AWAIT, partial(drop_receive, target))
            for target in ("shm", "tcp", "link", "rdmfake")
        ),
        *(
            Program(f"timers/{target}/{name}", Kind.SYSTEM, partial(run, target), has_endless_naps=True)
            for target in ("shm", "tcp", "link")
            for name, run in (("delayed", delay_operation), ("absent", await_absent_peer))
            if target != "link" or name == "delayed"
        ),
    ]
