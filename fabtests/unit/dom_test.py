# SPDX-License-Identifier: BSD-3-Clause
"""Domains: several at once, and every threading and progress model."""

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program


def several(bench: Bench) -> None:
    """Several domains of one fabric."""
    with ofipy.Fabric(bench.info) as fabric:
        domains = [fabric.domain() for _ in range(8)]
        for domain in domains:
            domain.close()


def models(bench: Bench) -> None:
    """Threading and progress."""
    with ofipy.Fabric(bench.info) as fabric:
        for threading in ("safe", "completion", "domain"):
            for progress in ("manual", "auto"):
                if (threading, progress) == ("domain", "auto"):
                    continue  # a helper thread would be a second one
                fabric.domain(threading=threading, progress=progress).close()


def parents_close_children(bench: Bench) -> None:
    """What was opened from a domain closes with it."""
    with ofipy.Fabric(bench.info) as fabric:
        domain = fabric.domain()
        queue, endpoint = domain.cq(), domain.endpoint().enable()
        domain.close()
        if not endpoint.closed:
            raise Failed("the endpoint is open")
        try:
            queue.read()
        except ofipy.Closed:
            return
        raise Failed("the queue is open")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (several, models, parents_close_children):
        bench.case(case)


PROGRAM = Program(summary="Domains.", cases=cases)
