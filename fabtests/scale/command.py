# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests scale``: one pattern, run as a job, and what the processes found together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import click
import numpy as np

import ofipy
from fabtests.base.fairness import jain
from fabtests.base.jobs import start_job
from fabtests.base.needs import require
from fabtests.base.program import Failed
from fabtests.scale.flows import Flows
from fabtests.scale.storm import answer_connections, answer_messages, storm
from fabtests.scale.traffic import Traffic
from ofipy.cli.support import print_json
from ofipy.pingpong.plan import Plan as AnyPlan
from ofipy.pingpong.plan import Span

__all__ = ["PATTERNS", "Plan", "document", "scale"]

MARGIN = 0.25  # seconds until all have begun
LIMIT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(AnyPlan):
    """What is to be measured; of sizes there is one."""

    pattern: str
    provider: str | None
    window: int
    """Messages that a sender has under way to one target."""
    seconds: float
    """That count."""
    ep_type: str
    """Of a storm of connections."""

    @property
    def size(self) -> int:
        """Bytes of a message."""
        return self.sizes[0]


def scale(*, number: int, as_json: bool, size: int, **options: Any) -> None:
    """Run a pattern in a job, which is started here unless this process is in one already."""
    plan = Plan(sizes=(size,), **options)
    _require(plan)
    with ofipy.job() as job:
        if job.launcher != "alone":
            _take_part(job, plan, as_json=as_json)
            return
    start_job(number)


def _require(plan: Plan) -> None:
    caps = "msg" if plan.pattern == "connection_storm" else "msg|tagged"
    require(caps, provider=plan.provider, ep_type=plan.ep_type)


def _take_part(job: ofipy.Job, plan: Plan, *, as_json: bool) -> None:
    if job.size < 2:
        raise Failed("a pattern needs 2 processes at least; this job has one")
    provider, flows = PATTERNS[plan.pattern](job, plan)
    found = Flows.add_up(job.exchange(flows.encode(), timeout=LIMIT))
    if job.rank == 0:
        told = document(plan, provider, job.size, found)
        if as_json:
            print_json(told)
        else:
            _table(told)
        if not told["count"]:
            raise Failed("nothing came within the time")


def _span(job: ofipy.Job, plan: Plan) -> Span:
    job.barrier(timeout=LIMIT)
    return Span(monotonic(), MARGIN, plan.seconds)


def _messages(job: ofipy.Job, plan: Plan, targets: Sequence[int], sources: int) -> tuple[str, Flows]:
    with ofipy.open(provider=plan.provider, caps="msg|tagged") as endpoint:
        peers = job.peers(endpoint, timeout=LIMIT)
        traffic = Traffic(
            endpoint,
            peers,
            job.rank,
            targets=targets,
            sources=sources,
            size=plan.size,
            window=plan.window,
        )
        flows = traffic.run(_span(job, plan))
        job.barrier(timeout=LIMIT)  # what was injected has come
        return endpoint.provider, flows


def _many_to_one(job: ofipy.Job, plan: Plan) -> tuple[str, Flows]:
    return _messages(job, plan, [0] if job.rank else [], 0 if job.rank else job.size - 1)


def _all_to_all(job: ofipy.Job, plan: Plan) -> tuple[str, Flows]:
    # Nobody begins with the same target.
    others = [(job.rank + step) % job.size for step in range(1, job.size)]
    return _messages(job, plan, others, len(others))


def _connection_storm(job: ofipy.Job, plan: Plan) -> tuple[str, Flows]:
    connected = plan.ep_type == "msg"
    opened: Any
    if connected and job.rank == 0:
        opened = ofipy.listen(provider=plan.provider, caps="msg")
    else:
        opened = ofipy.open(provider=plan.provider, ep_type=plan.ep_type, caps="msg")
    with opened:
        own = b"" if job.rank else bytes(opened.address)
        server = ofipy.Address.from_bytes(job.exchange(own, timeout=LIMIT)[0])
        span = _span(job, plan)
        flows = Flows(np.zeros(0, np.int64))
        if job.rank:
            flows = storm(opened, server, job.rank, span, connected=connected)
        elif connected:
            answer_connections(opened, job.size - 1)
        else:
            answer_messages(opened, job.size - 1)
        job.barrier(timeout=LIMIT)
        return opened.domain.provider, flows


PATTERNS: dict[str, Callable[[ofipy.Job, Plan], tuple[str, Flows]]] = {
    "many_to_one": _many_to_one,
    "all_to_all": _all_to_all,
    "connection_storm": _connection_storm,
}


def document(plan: Plan, provider: str, processes: int, found: Flows) -> dict[str, Any]:
    """What all processes found together."""
    from ofipy import __version__
    from ofipy.pingpong.machine import describe_machine

    count = int(found.counts.sum())
    storm = plan.pattern == "connection_storm"
    how = {"ep_type": plan.ep_type} if storm else {"bytes": plan.size, "window": plan.window}
    return {
        "version": 1,
        "pattern": plan.pattern,
        "provider": provider,
        "processes": processes,
        **how,
        "unit": "connections" if storm else "messages",
        "seconds": plan.seconds,
        "count": count,
        "per_sec": count / plan.seconds,
        "jain": round(jain(found.counts), 4),
        "starved": int(np.count_nonzero(found.counts == 0)),
        "p50_usec": found.turns.percentile(50),
        "p99_usec": found.turns.percentile(99),
        "p99_9_usec": found.turns.percentile(99.9),
        "flows": found.counts.tolist(),
        "ofipy": __version__,
        "machine": describe_machine(),
    }


def _table(told: dict[str, Any]) -> None:
    what = f"{told['bytes']} B, windows of {told['window']}" if "bytes" in told else told["ep_type"]
    click.echo(f"{told['pattern']} over {told['provider']}, {what}")
    click.echo(
        f"{'processes':>9} {told['unit'] + '/s':>14} {'jain':>7} {'starved':>8} {'min':>10} {'max':>10}"
        f" {'p50':>10} {'p99':>10} {'p99.9':>10}"
    )
    tail = (told["p50_usec"], told["p99_usec"], told["p99_9_usec"])
    times = " ".join(f"{'-' if each is None else f'{each:.1f}':>10}" for each in tail)
    click.echo(
        f"{told['processes']:>9} {told['per_sec']:>14.0f} {told['jain']:>7.4f} {told['starved']:>8}"
        f" {min(told['flows']):>10} {max(told['flows']):>10} {times}"
    )
