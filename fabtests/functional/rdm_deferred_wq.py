# SPDX-License-Identifier: BSD-3-Clause
"""Work that starts when a counter reaches a value: messages, writes, reads and atomics, each after the one before."""

from typing import Any

import numpy as np

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program
from ofipy import Op

LIMIT = 20.0


def _pair(domain: ofipy.Domain) -> tuple[ofipy.Endpoint, ofipy.Peer, ofipy.Region]:
    endpoint = domain.endpoint().enable()
    access = ofipy.Access.LOCAL | ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE
    return (
        endpoint,
        endpoint.insert(endpoint.address),
        endpoint.register(np.zeros(64, np.uint8), access=access),
    )


def _record(endpoint: ofipy.Endpoint, peer: ofipy.Peer, region: ofipy.Region, op: Op) -> Any:
    record = endpoint.domain.operations(1)
    record["op"], record["peer"], record["endpoint"] = op, int(peer), endpoint.id
    record["region"], record["length"] = region.id, 8
    if op not in (Op.SEND, Op.TSEND, Op.RECV, Op.TRECV):
        remote = region.remote[32:40]
        record["remote_key"], record["remote_offset"] = remote.key, remote.offset
    return record


def _after(bench: Bench, op: Op, expected: int) -> None:
    with bench.domain() as domain:
        endpoint, peer, region = _pair(domain)
        start, done = domain.counter(), domain.counter()
        region.array[:8] = 7
        region.array[32:40] = 3
        record = _record(endpoint, peer, region, op)
        if op is Op.ATOMIC:
            record["atomic_op"], record["datatype"] = ofipy.AtomicOp.SUM, ofipy.Datatype.UINT8
        domain.defer(record, after=(start, 2), completes=done)
        start.add(1)
        if done.value:
            raise Failed("the work started before its counter said so")
        start.add(1)
        done.wait(1, LIMIT)
        place = 0 if op is Op.READ else 32
        if not (region.array[place : place + 8] == expected).all():
            raise Failed(f"{region.array[place : place + 8]} where {expected} was to be")


def deferred_write(bench: Bench) -> None:
    """A write."""
    bench.needs("rma")
    _after(bench, Op.WRITE, 7)


def deferred_read(bench: Bench) -> None:
    """A read."""
    bench.needs("rma")
    _after(bench, Op.READ, 3)


def deferred_atomic(bench: Bench) -> None:
    """An atomic sum."""
    bench.needs("atomic")
    _after(bench, Op.ATOMIC, 10)


def deferred_messages(bench: Bench) -> None:
    """A send after a receive was posted by another deferral."""
    with bench.domain() as domain:
        endpoint, peer, region = _pair(domain)
        start, sent, received = domain.counter(), domain.counter(), domain.counter()
        region.array[:8] = 9
        receive = _record(endpoint, peer, region, Op.RECV)
        receive["offset"] = 32
        domain.defer(_record(endpoint, peer, region, Op.SEND), after=(start, 2), completes=sent)
        domain.defer(receive, after=(start, 1), completes=received)
        start.add(2)
        sent.wait(1, LIMIT)
        received.wait(1, LIMIT)
        if not (region.array[32:40] == 9).all():
            raise Failed("another message came")


def counters_move_counters(bench: Bench) -> None:
    """An addition to a counter after another one."""
    with bench.domain() as domain:
        domain.endpoint().enable()
        first, second = domain.counter(), domain.counter()
        second.add(5, after=(first, 1))
        first.add(1)
        second.wait(5, LIMIT)


def cancelled_work(bench: Bench) -> None:
    """Work that is taken back never starts."""
    with bench.domain() as domain:
        endpoint, peer, region = _pair(domain)
        start, done = domain.counter(), domain.counter()
        work = domain.defer(_record(endpoint, peer, region, Op.SEND), after=(start, 1), completes=done)
        if not work.cancel():
            raise Failed("work that waits could not be cancelled")
        start.add(1)
        if done.value:
            raise Failed("cancelled work was done")


def cases(bench: Bench) -> None:
    """Every kind."""
    for case in (
        deferred_messages,
        deferred_write,
        deferred_read,
        deferred_atomic,
        counters_move_counters,
        cancelled_work,
    ):
        bench.case(case)


PROGRAM = Program(summary="Work that waits for a counter.", cases=cases, caps="msg|trigger")
