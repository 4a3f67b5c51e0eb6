# SPDX-License-Identifier: BSD-3-Clause
"""A provider leaves the program's signal handlers alone."""

import signal

from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program


def handlers_stay(bench: Bench) -> None:
    """Before, while and after an endpoint is open."""
    numbers = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    before = {number: signal.getsignal(number) for number in numbers}
    with bench.domain() as domain, domain.endpoint().enable() as endpoint:
        endpoint.insert(endpoint.address)
        during = {number: signal.getsignal(number) for number in numbers}
    after = {number: signal.getsignal(number) for number in numbers}
    if not before == during == after:
        raise Failed("a handler was replaced")


PROGRAM = Program(
    summary="The program keeps its signal handlers.", cases=lambda bench: bench.case(handlers_stay)
)
