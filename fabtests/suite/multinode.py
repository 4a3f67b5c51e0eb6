# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests multinode``: patterns of messages or writes among N processes of a job."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from time import perf_counter_ns

import click
import numpy as np

import ofipy
from fabtests.base.jobs import start_job
from fabtests.base.pattern import pattern
from fabtests.base.program import Failed, NotRun
from ofipy.cli.support import print_json

__all__ = ["PATTERNS", "multinode"]

LIMIT = 60.0

Pairs = Iterable[tuple[int, int]]


def _ring(size: int) -> Pairs:
    return ((rank, (rank + 1) % size) for rank in range(size))


def _full_mesh(size: int) -> Pairs:
    return ((one, other) for one in range(size) for other in range(size))


def _all_to_all(size: int) -> Pairs:
    # As the mesh, but nobody begins with the same target.
    return ((one, (one + step) % size) for step in range(size) for one in range(size))


PATTERNS: dict[str, Callable[[int], Pairs]] = {
    "full_mesh": _full_mesh,
    "ring": _ring,
    "gather": lambda size: ((rank, 0) for rank in range(size)),
    "broadcast": lambda size: ((0, rank) for rank in range(size)),
    "all_to_all": _all_to_all,
}


def _caps(*, writes: bool) -> str:
    return "msg|tagged|rma" if writes else "msg|tagged"


class Node:
    """One process of the job."""

    def __init__(self, job: ofipy.Job, *, provider: str | None, size: int, writes: bool) -> None:
        caps = _caps(writes=writes)
        self.job = job
        self.size = size
        self.endpoint = ofipy.open(provider=provider, caps=caps)
        self.peers = job.peers(self.endpoint)
        # Whoever sends to us has a place of its own in our memory.
        self.incoming = np.zeros((job.size, size), np.uint8)
        self.outgoing = pattern(size).copy()
        self.outgoing[0] = job.rank
        self.ways: Counter[str] = Counter()
        """Transfers that this process began, by the provider that carried them."""
        self.remotes: list[ofipy.RemoteRegion] = []
        if writes:
            region = self.endpoint.register(self.incoming, access="local|remote_write")
            self.remotes = [
                ofipy.RemoteRegion.from_bytes(each) for each in job.exchange(bytes(region.remote))
            ]

    def run(self, pairs: list[tuple[int, int]]) -> int:
        """Take part once; nanoseconds until what we sent has left."""
        rank, endpoint = self.job.rank, self.endpoint
        sources = [source for source, target in pairs if target == rank]
        targets = [target for source, target in pairs if source == rank]
        self.incoming[:] = 0
        self.job.barrier(timeout=LIMIT)
        begin = perf_counter_ns()
        if self.remotes:
            own = slice(rank * self.size, (rank + 1) * self.size)
            requests = [
                endpoint.write(
                    self.outgoing, self.peers[target], self.remotes[target][own], complete="delivery"
                )
                for target in targets
            ]
            ofipy.wait_all(requests, timeout=LIMIT)
            spent = perf_counter_ns() - begin
            self.job.barrier(timeout=LIMIT)
        else:
            receives = [
                endpoint.trecv_into(self.incoming[source], self.peers[source], tag=source)
                for source in sources
            ]
            sends = [endpoint.tsend(self.outgoing, self.peers[target], tag=rank) for target in targets]
            ofipy.wait_all(sends, timeout=LIMIT)
            spent = perf_counter_ns() - begin
            ofipy.wait_all(receives, timeout=LIMIT)
        self._check(sources)
        return spent

    def count_ways(self, pairs: list[tuple[int, int]]) -> None:
        """Count by which provider each transfer of this process went. Its time is no transfer's."""
        self.ways.update(
            self.endpoint.way(self.peers[target]) for source, target in pairs if source == self.job.rank
        )

    def _check(self, sources: list[int]) -> None:
        expected = pattern(self.size).copy()
        for source in sources:
            expected[0] = source
            if not np.array_equal(self.incoming[source], expected):
                raise Failed(f"rank {self.job.rank}: what came from rank {source} is not what it sent")


def multinode(
    *,
    number: int,
    provider: str | None,
    patterns: tuple[str, ...],
    iterations: int,
    size: int,
    kind: str,
    timing: bool,
    as_json: bool,
) -> None:
    """Run the patterns in a job, which is started here unless this process is in one already."""
    caps = _caps(writes=kind == "rma")
    if provider is not None and not ofipy.getinfo(provider=provider, caps=caps):
        raise NotRun(f"capability {caps}: {provider} lacks it")
    job = ofipy.job()
    if job.launcher == "alone" and number > 1:
        job.close()
        start_job(number)
        return
    node = Node(job, provider=provider, size=size, writes=kind == "rma")
    say = click.echo if job.rank == 0 and not as_json else _keep_silent
    rows = []
    for name in patterns or tuple(PATTERNS):
        pairs = list(PATTERNS[name](job.size))
        say(f"pattern {name}, {kind}, {job.size} processes, {len(pairs)} transfers of {size} bytes")
        times = _repeat(node, pairs, iterations)
        if timing:
            say("Iteration  Min Send (ns)  Max Send (ns)  Pattern Time(ns)  Average Send(ns)")
            for iteration, row in enumerate(times):
                least, most, whole, mean = row.values()
                say(f"{iteration:>9}  {least:>13}  {most:>13}  {whole:>16}  {mean:>16}")
        rows.append({"pattern": name, "transfers": len(pairs), "repetitions": times})
    told = job.exchange(json.dumps(node.ways).encode(), timeout=LIMIT)
    ways = sum((Counter(json.loads(each)) for each in told), Counter[str]())
    say("GOOD: every message came")
    if job.rank == 0 and as_json:
        print_json(
            {
                "version": 1,
                "program": "multinode",
                "provider": node.endpoint.provider,
                "processes": job.size,
                "kind": kind,
                "bytes": size,
                "iterations": iterations,
                "transfers": ways.total(),
                "ways": dict(ways),
                "patterns": rows,
                "ofipy": ofipy.__version__,
            }
        )


def _repeat(node: Node, pairs: list[tuple[int, int]], iterations: int) -> list[dict[str, int]]:
    """Run one pattern several times; the nanoseconds of each repetition, over all processes."""
    times = []
    for _ in range(iterations):
        begin = perf_counter_ns()
        spent = node.run(pairs)
        whole = perf_counter_ns() - begin
        node.count_ways(pairs)
        sends = [int.from_bytes(each, "little") for each in node.job.exchange(spent.to_bytes(8, "little"))]
        times.append(
            {
                "min_send_ns": min(sends),
                "max_send_ns": max(sends),
                "pattern_ns": whole,
                "average_send_ns": sum(sends) // len(sends),
            }
        )
    return times


def _keep_silent(line: str) -> None:
    """Print nothing: another rank prints, or the document says it."""
