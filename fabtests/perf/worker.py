# SPDX-License-Identifier: BSD-3-Clause
"""A process that measures: the client's says what to run, the server's does its part of it.

Each batch is announced over the channel and answered when the other side is ready, so a loop in C never has to know
the time: a timed test is batches of about a tenth of a second until it is over.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ofipy
from fabtests.base.channel import Channel
from fabtests.base.program import Failed
from fabtests.perf.kinds import find
from fabtests.perf.plan import MOST_ITERATIONS, Plan
from fabtests.perf.result import Result
from fabtests.perf.runs import prepare, run
from fabtests.perf.side import Side
from ofipy.pingpong.plan import Span, fill_time

__all__ = ["measure", "serve"]

WARMUP = 16  # operations of each queue pair in a batch before the clock starts
# Such batches go on for so long: a provider may need some progress of both sides until it reaches the peer's memory by
# its fastest way.
WARMUP_SECONDS = 0.05
BATCH_SECONDS = 0.1
MOST_GROWTH = 10.0  # of a batch, over the one before

Tell = Callable[[str, Any], None]


def serve(channel: Channel, plan: Plan, tell: Tell) -> None:
    """The server's: do as told until the client is done."""
    with Side(plan, find(plan.test), channel, first=False) as side:
        tell("about", _about(side))
        while "end" not in (order := channel.receive()):
            size, iterations = order.get("size"), order.get("iterations")
            if size not in plan.sizes or type(iterations) is not int or not 0 < iterations <= MOST_ITERATIONS:
                raise Failed(f"the client asks for {iterations} operations of {size} bytes")
            prepare(side, size, iterations)
            channel.send(ready=True)
            channel.send(rate=run(side, size, iterations).rate)


def measure(channel: Channel, plan: Plan, tell: Tell, together: Callable[[], Any]) -> None:
    """The client's: every size; `together` waits for the other processes."""
    with Side(plan, find(plan.test), channel, first=True) as side:
        tell("about", _about(side))
        sizes = [size for size in plan.sizes if size <= side.limit]
        if not sizes:
            raise Failed(
                f"-s {plan.sizes[0]}: {side.domain.provider} has messages of {side.limit} bytes at most"
            )
        for size in sizes:
            _warm_up(side, channel, size)
            together()
            if plan.duration is None:
                tell("result", _batch(side, channel, size, plan.iterations))
            else:
                tell("result", _timed(side, channel, size, plan.duration, tell))
        channel.send(end=True)


def _warm_up(side: Side, channel: Channel, size: int) -> None:
    end = time.monotonic() + WARMUP_SECONDS
    _batch(side, channel, size, WARMUP)
    while time.monotonic() < end:
        _batch(side, channel, size, WARMUP)


def _batch(side: Side, channel: Channel, size: int, iterations: int) -> Result:
    prepare(side, size, iterations)
    channel.send(size=size, iterations=iterations)
    channel.receive()
    result = run(side, size, iterations)
    theirs = channel.receive(rate=float)["rate"]
    if not side.plan.bidirectional:
        return result
    if not 0 < theirs < math.inf:
        raise Failed(f"the other side told a rate of {theirs}")
    # Both ways are over when the slower one is.
    rate = 2 * min(result.rate, theirs)
    return replace(
        result,
        operations=2 * result.operations,
        rate=rate,
        peak=max(2 * result.peak, rate) if result.peak else 0,
    )


def _timed(side: Side, channel: Channel, size: int, duration: float, tell: Tell) -> Result:
    margin, now = side.plan.margin, time.monotonic()
    span = Span(now, margin, duration - 2 * margin)
    iterations = WARMUP
    counted: list[tuple[int, float]] = []
    while now < span.end:
        before = now
        result = _batch(side, channel, size, iterations)
        last = result.operations, result.operations / result.rate
        now = time.monotonic()
        if span.counts(before) and span.counts(now):
            counted.append(last)
        tell("live", (size, now - span.begin, result.rate))
        longest = min(int(iterations * MOST_GROWTH), MOST_ITERATIONS)
        iterations = fill_time(BATCH_SECONDS, last[1] / iterations, least=WARMUP, most=longest)
    operations, seconds = (sum(each) for each in zip(*(counted or [last]), strict=True))
    return Result(size=size, operations=int(operations), rate=operations / seconds)


def _about(side: Side) -> dict[str, Any]:
    """For the banner."""
    info: ofipy.Info = side.endpoints[0].info
    local, remote = side.addresses
    return {
        "provider": info.provider,
        "device": info.domain,
        "inline": info.inject_size,
        "local": local,
        "remote": remote,
    }
