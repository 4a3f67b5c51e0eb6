# SPDX-License-Identifier: BSD-3-Clause
"""Ping-pong with memory that is mapped and unmapped around each message."""

import mmap
from time import perf_counter_ns

import numpy as np

from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session
from fabtests.base.timing import every_size


def send_once(session: Session, size: int) -> None:
    """Send out of memory that is gone afterwards."""
    with mmap.mmap(-1, size) as memory:
        view = np.frombuffer(memory, np.uint8)
        view[:] = pattern(size)
        session.send(view)
        del view


def play(session: Session, size: int) -> None:
    """One size."""
    count = session.options.count(size)
    session.sync()
    begin = perf_counter_ns()
    for _ in range(count):
        if session.client:
            send_once(session, size)
        check(session.take())
        session.post()
        if not session.client:
            send_once(session, size)
    session.report.add(size, count, (perf_counter_ns() - begin) / 1e9, transfers=2)


def run(session: Session) -> None:
    """Every size."""
    every_size(session, play)


PROGRAM = Program(
    summary="Ping-pong with memory that is mapped and unmapped.",
    run=run,
    out_of_band="sync",
    size=None,
    iterations=None,
)
