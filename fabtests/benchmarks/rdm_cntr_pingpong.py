# SPDX-License-Identifier: BSD-3-Clause
"""Latency of messages that counters report."""

from fabtests.base.program import Program
from fabtests.base.session import Session
from fabtests.base.timing import every_size, pingpong


def run(session: Session) -> None:
    """Every size."""
    every_size(session, pingpong)


PROGRAM = Program(
    summary="Latency of messages that counters report.", run=run, size=None, iterations=None, counters=True
)
