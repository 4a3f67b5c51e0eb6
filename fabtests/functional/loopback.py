# SPDX-License-Identifier: BSD-3-Clause
"""An endpoint that sends to itself."""

from fabtests.base.cases import Bench
from fabtests.base.greeting import GREETING
from fabtests.base.program import Failed, Program


def loopback(bench: Bench) -> None:
    """Send and receive."""
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        room = bytearray(64)
        receive = endpoint.recv_into(room)
        endpoint.send(GREETING.encode(), endpoint.insert(endpoint.address)).wait(timeout=20)
        length = receive.wait(timeout=20).length
        if room[:length] != GREETING.encode():
            raise Failed(f"{bytes(room[:length])!r} came")


PROGRAM = Program(summary="An endpoint sends to itself.", cases=lambda bench: bench.case(loopback))
