# SPDX-License-Identifier: BSD-3-Clause
"""Counters: many of them, their values, errors and waits."""

import threading

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program


def many(bench: Bench) -> None:
    """Open many, write and read each."""
    with bench.domain() as domain:
        counters = [domain.counter() for _ in range(256)]
        for number, counter in enumerate(counters):
            counter.set(number)
            counter.add(1)
        for number, counter in enumerate(counters):
            if counter.value != number + 1:
                raise Failed(f"counter {number} has {counter.value}")


def errors(bench: Bench) -> None:
    """Errors are counted apart, and end a wait that has not heard of them."""
    with bench.domain() as domain, domain.counter() as counter:
        counter.add_error(2)
        try:
            counter.wait(1, timeout=20)
        except ofipy.TimedOut:
            raise Failed("an error did not end the wait") from None
        except ofipy.FabricError:
            pass
        else:
            raise Failed("a wait ended well without its value")
        if (counter.value, counter.errors) != (0, 2):
            raise Failed(f"{counter.value} and {counter.errors} errors")


def wait(bench: Bench) -> None:
    """Another thread ends a wait by an addition."""
    with bench.domain() as domain, domain.counter() as counter:
        timer = threading.Timer(0.05, counter.add, (3,))
        timer.start()
        counter.wait(3, timeout=20)
        timer.join()


def time_out(bench: Bench) -> None:
    """A wait ends in time."""
    with bench.domain() as domain, domain.counter() as counter:
        try:
            counter.wait(1, timeout=0.01)
        except ofipy.TimedOut:
            return
        raise Failed("the wait ended well")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (many, errors, wait, time_out):
        bench.case(case)


PROGRAM = Program(summary="Counters.", cases=cases)
