# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidth of messages between connected endpoints."""

from fabtests.base.program import Program
from fabtests.base.session import Session
from fabtests.base.timing import bandwidth, every_size


def run(session: Session) -> None:
    """Every size."""
    every_size(session, bandwidth)


PROGRAM = Program(
    summary="Bandwidth of messages between connected endpoints.",
    run=run,
    size=None,
    iterations=None,
    ep_type="msg",
)
