# SPDX-License-Identifier: BSD-3-Clause
"""One run of so many operations, from either side; the loops are in C."""

import numpy as np

import ofipy
from fabtests.perf.result import Result, find_peak
from fabtests.perf.side import Side
from ofipy.pingpong.pipeline import run_pipeline

__all__ = ["prepare", "run"]


def prepare(side: Side, size: int, iterations: int) -> None:
    """What must be there before the other side begins."""
    if _receives(side):
        side.post_receives(size, iterations)


def run(side: Side, size: int, iterations: int) -> Result:
    """Do one side's part; of one that does nothing the result has no operations."""
    if side.kind.answers:
        return _answered(side, size, iterations)
    if side.kind.latency:
        return _alone(side, size, iterations) if side.first else _nothing(size)
    return _bandwidth(side, size, iterations)


def _nothing(size: int) -> Result:
    return Result(size=size, operations=0, rate=0.0)


def _sends(side: Side) -> bool:
    return side.first or side.plan.bidirectional


def _receives(side: Side) -> bool:
    return (
        side.kind.operation == "send"
        and not side.kind.latency
        and (not side.first or side.plan.bidirectional)
    )


def _answered(side: Side, size: int, iterations: int) -> Result:
    """Ping-pong; a sample is half a round trip."""
    times = np.zeros(iterations, np.int64)
    endpoint, peer = side.endpoints[0], side.peers[0]
    if side.kind.operation == "send":
        seconds = ofipy.measure.pingpong(
            endpoint, peer, first=side.first, send=side.outgoing(size), receive=side.incoming(size),
            iterations=iterations, tag=None, nanoseconds=times,
        )  # fmt: skip
    else:
        seconds = ofipy.measure.write(
            endpoint, peer, side.remote(size), first=side.first, send=side.outgoing(size),
            landing=side.landing(size), iterations=iterations, nanoseconds=times,
        )  # fmt: skip
    return Result(size=size, operations=iterations, rate=iterations / seconds, samples=times / 2e3)


def _alone(side: Side, size: int, iterations: int) -> Result:
    """One after the other; a sample is from the post to the completion."""
    posted, completed = np.zeros((2, iterations), np.int64)
    seconds = run_pipeline(
        side.endpoints[:1], operations=side.operations(size), iterations=iterations,
        posted=posted, completed=completed,
    )  # fmt: skip
    return Result(
        size=size, operations=iterations, rate=iterations / seconds, samples=(completed - posted) / 1e3
    )


def _bandwidth(side: Side, size: int, iterations: int) -> Result:
    """Many under way at once."""
    sends, receives, plan = _sends(side), _receives(side), side.plan
    if not sends and not receives:
        return _nothing(size)
    # Groups of one length say what a stretch of them holds; with a shorter last one the average is told.
    group = min(plan.moderation, iterations)
    groups = len(side.endpoints) * (iterations // group)
    alike = iterations % group == 0
    times = np.zeros((2, groups), np.int64) if sends and plan.peak and alike else None
    seconds = run_pipeline(
        side.endpoints,
        operations=side.operations(size) if sends else None,
        receives=side.receives(size) if receives else None,
        iterations=iterations,
        depth=plan.depth,
        receive_depth=plan.receive_depth,
        post_list=plan.post_list,
        moderation=plan.moderation,
        posted=None if times is None else times[0],
        completed=None if times is None else times[1],
    )
    if not sends:
        return _nothing(size)
    count = iterations * len(side.endpoints)
    rate = count / seconds
    peak = rate if plan.peak else 0.0
    if times is not None:
        peak = find_peak(times[0], times[1], group)
    return Result(size=size, operations=count, rate=rate, peak=peak)
