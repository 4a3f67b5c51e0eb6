# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues: sizes, formats, signals, time-outs."""

import threading

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program


def open_and_close(bench: Bench) -> None:
    """Queues of many sizes."""
    with bench.domain() as domain:
        for size in (1, 2, 7, 64, 1000, 1 << 14):
            domain.cq(size=size).close()


def formats(bench: Bench) -> None:
    """Every format of libfabric."""
    with bench.domain() as domain:
        for name in ("context", "msg", "data", "tagged"):
            domain.cq(format=name).close()


def empty(bench: Bench) -> None:
    """An empty queue has nothing, and says so in time."""
    with bench.domain() as domain, domain.cq() as queue:
        if len(queue.read()):
            raise Failed("there was a completion")
        try:
            queue.wait(0.01)
        except ofipy.TimedOut:
            return
        raise Failed("a wait for nothing ended well")


def signal(bench: Bench) -> None:
    """Another thread ends a wait."""
    with bench.domain() as domain, domain.cq() as queue:
        timer = threading.Timer(0.05, queue.signal)
        timer.start()
        queue.wait(20)
        timer.join()


def completions(bench: Bench) -> None:
    """A send and a receive have one entry each, with their contexts."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        region = endpoint.register(bytearray(16))
        peer = endpoint.insert(endpoint.address)
        endpoint.post_recv(region[8:16], context=2)
        endpoint.post_send(region[0:8], peer, context=1)
        contexts: list[int] = []
        while len(contexts) < 2:
            contexts += [int(row["context"]) for row in endpoint.cq.wait(20)]
        if sorted(contexts) != [1, 2]:
            raise Failed(f"contexts {contexts}")


def shared(bench: Bench) -> None:
    """Several endpoints on one queue, which says whose completion it is."""
    with bench.domain() as domain, domain.cq() as queue:
        endpoints = [domain.endpoint(cq=queue).enable() for _ in range(3)]
        for endpoint in endpoints:
            region = endpoint.register(bytearray(8))
            endpoint.post_recv(region)
            endpoint.send(b"x", endpoint.insert(endpoint.address)).wait(timeout=20)
        ids: set[int] = set()
        while len(ids) < len(endpoints):
            ids |= {int(row["endpoint"]) for row in queue.wait(20)}
        if ids != {each.id for each in endpoints}:
            raise Failed(f"endpoints {ids}")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (open_and_close, formats, empty, signal, completions, shared):
        bench.case(case)


PROGRAM = Program(summary="Completion queues.", cases=cases)
