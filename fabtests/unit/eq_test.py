# SPDX-License-Identifier: BSD-3-Clause
"""Event queues: sizes, the program's own events, descriptors, time-outs, looking without taking."""

import select

import ofipy
from fabtests.base.cases import Bench
from fabtests.base.program import Failed, Program
from ofipy import Event


def open_and_close(bench: Bench) -> None:
    """Queues of many sizes."""
    with bench.domain() as domain:
        for size in (1, 2, 7, 64, 1000):
            domain.event_queue(size=size).close()


def write_and_read(bench: Bench) -> None:
    """Own events come out in order."""
    with bench.domain() as domain, domain.event_queue() as queue:
        for number in range(5):
            queue.write(Event(context=number, data=bytes([number])))
        found = [queue.wait(20).context for _ in range(5)]
        if found != list(range(5)) or queue.read() is not None:
            raise Failed(f"contexts {found}")


def peek(bench: Bench) -> None:
    """Looking does not take."""
    with bench.domain() as domain, domain.event_queue() as queue:
        queue.write(Event(context=7))
        first, second, taken = queue.peek(), queue.peek(), queue.read()
        if not first == second == taken or queue.read() is not None:
            raise Failed(f"{first}, {second}, {taken}")


def time_out(bench: Bench) -> None:
    """A wait for nothing ends in time."""
    with bench.domain() as domain, domain.event_queue() as queue:
        try:
            queue.wait(0.01)
        except ofipy.TimedOut:
            return
        raise Failed("there was an event")


def descriptor(bench: Bench) -> None:
    """The descriptor wakes a sleeper."""
    with bench.domain() as domain, domain.event_queue() as queue:
        if not queue.arm():
            raise Failed("it is not safe to sleep on an empty queue")
        if select.select([queue], [], [], 0)[0]:
            raise Failed("the descriptor is ready, and there is nothing")
        queue.write(Event(context=1))
        if not select.select([queue], [], [], 20)[0] or queue.read() is None:
            raise Failed("the descriptor did not wake up")


def cases(bench: Bench) -> None:
    """All of them."""
    for case in (open_and_close, write_and_read, peek, time_out, descriptor):
        bench.case(case)


PROGRAM = Program(summary="Event queues.", cases=cases)
