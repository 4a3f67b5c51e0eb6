# SPDX-License-Identifier: BSD-3-Clause
"""One datagram."""

from fabtests.base.greeting import greet
from fabtests.base.program import Program

PROGRAM = Program(summary="One datagram.", run=greet, ep_type="dgram", end=False)
