# SPDX-License-Identifier: BSD-3-Clause
"""Latency of messages between unconnected endpoints."""

from fabtests.base.program import Program
from fabtests.base.session import Session
from fabtests.base.timing import every_size, pingpong


def run(session: Session) -> None:
    """Every size."""
    every_size(session, pingpong)


PROGRAM = Program(
    summary="Latency of messages between unconnected endpoints.", run=run, size=None, iterations=None
)
