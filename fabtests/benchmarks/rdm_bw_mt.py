# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidth of several threads, each with a domain and an endpoint of its own."""

import threading
from time import perf_counter_ns

import numpy as np
import rich_click as click

import ofipy
from fabtests.base.meeting import swap_names
from fabtests.base.program import Program
from fabtests.base.session import Session


class Lane:
    """One thread's endpoint, and its peer on the other side."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.endpoint: ofipy.Endpoint = session.another()
        self.peer: ofipy.Peer | None = None

    def meet(self) -> None:
        """Exchange addresses over the TCP connection."""
        self.peer = self.endpoint.insert(swap_names(self._session, self.endpoint))

    def run(self, count: int, outgoing: "np.ndarray[tuple[int], np.dtype[np.uint8]]", both: bool) -> None:
        """Send, or receive, one message after the other."""
        assert self.peer is not None
        room, limit, client = np.empty_like(outgoing), self._session.limit, self._session.client
        for _ in range(count):
            for sends in (client, not client) if both else (client,):
                if sends:
                    self.endpoint.send(outgoing, self.peer, room_timeout=limit).wait(timeout=limit)
                else:
                    self.endpoint.recv_into(room, self.peer, room_timeout=limit).wait(timeout=limit)


def measure(session: Session, lanes: list[Lane], size: int) -> None:
    """All threads, one size."""
    options, both = session.options, session.options.extra["both"]
    outgoing, errors = np.zeros(size, np.uint8), []
    barrier = threading.Barrier(len(lanes) + 1)
    count = options.count(size)

    def work(lane: Lane) -> None:
        try:
            barrier.wait()
            lane.run(options.warmup, outgoing, both)
            barrier.wait()
            lane.run(count, outgoing, both)
        except Exception as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(lane,), daemon=True) for lane in lanes]
    for thread in threads:
        thread.start()
    try:
        barrier.wait()
        barrier.wait()
        begin = perf_counter_ns()
        for thread in threads:
            thread.join()
        seconds = (perf_counter_ns() - begin) / 1e9
    except threading.BrokenBarrierError:
        pass
    if errors:
        raise errors[0]
    session.report.add(size, count, seconds, transfers=len(lanes))


def run(session: Session) -> None:
    """Every size."""
    lanes = [Lane(session) for _ in range(session.options.extra["endpoints"])]
    for lane in lanes:
        lane.meet()
    for size in session.options.sizes.sizes:
        measure(session, lanes, size)


PROGRAM = Program(
    summary="Bandwidth of several threads.",
    run=run,
    out_of_band="sync+address",
    meet=False,
    post=False,
    end=False,
    size=None,
    options=(
        click.option(
            "-n",
            "endpoints",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            help="Threads and endpoints.",
        ),
        click.option("-g", "both", is_flag=True, help="Both directions, one after the other."),
    ),
)
