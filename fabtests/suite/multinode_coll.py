# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests multinode_coll``: every collective among N processes of a job, checked at each of them."""

from collections.abc import Callable
from time import perf_counter_ns

import click
import numpy as np
import numpy.typing as npt

import ofipy
from fabtests.base.jobs import start_job
from fabtests.base.program import Failed, NotRun
from ofipy.cli.support import print_json

__all__ = ["TESTS", "multinode_coll"]

LIMIT = 60.0

Array = npt.NDArray[np.uint64]


class Member:
    """One process: what it gives, and what it is to get in each repetition."""

    def __init__(self, group: ofipy.Group, size: int) -> None:
        self.group = group
        self.length = max(size // 8, 1)
        self.repetition = 0

    @property
    def root(self) -> int:
        """Another one in each repetition."""
        return self.repetition % self.group.size

    def give(self, rank: int, block: int = 0) -> Array:
        """What a rank gives, as every rank knows."""
        first = 1 + rank * 1000 + block * 1_000_000 + self.repetition
        return np.arange(first, first + self.length, dtype=np.uint64)

    def give_blocks(self, rank: int) -> Array:
        """A block for each rank."""
        return np.stack([self.give(rank, block) for block in range(self.group.size)])

    def check(self, got: Array, wanted: Array) -> None:
        """Compare what came with what was to come.

        Raises
        ------
        Failed
            When they differ.
        """
        if not np.array_equal(got, wanted):
            raise Failed(f"rank {self.group.rank}, repetition {self.repetition}: the result is wrong")

    def sum_of(self, ranks: range, block: int = 0) -> Array:
        """The sum of what these ranks give."""
        total = np.zeros(self.length, np.uint64)
        for rank in ranks:
            total += self.give(rank, block)
        return total


def _join(member: Member) -> None:
    """A new group of every second rank, and a barrier of it."""
    group = member.group.split(member.group.rank % 2).wait(timeout=LIMIT)
    assert group is not None, "every rank names a color"
    with group:
        group.barrier().wait(timeout=LIMIT)
        if [int(peer) for peer in group.peers] != [
            int(peer) for peer in member.group.peers[member.group.rank % 2 :: 2]
        ]:
            raise Failed(f"rank {member.group.rank}: the new group has other members")


def _barrier(member: Member) -> None:
    member.group.barrier().wait(timeout=LIMIT)


def _broadcast(member: Member) -> None:
    a = member.give(member.group.rank)
    member.group.broadcast(a, root=member.root).wait(timeout=LIMIT)
    member.check(a, member.give(member.root))


def _reduce(member: Member) -> None:
    a = member.give(member.group.rank)
    got = member.group.reduce(a, root=member.root).wait(timeout=LIMIT)
    if member.group.rank == member.root:
        member.check(got, member.sum_of(range(member.group.size)))


def _allreduce(member: Member) -> None:
    a = member.give(member.group.rank)
    member.check(member.group.allreduce(a).wait(timeout=LIMIT), member.sum_of(range(member.group.size)))


def _gather(member: Member) -> None:
    group = member.group
    into = np.zeros((group.size, member.length), np.uint64) if group.rank == member.root else None
    group.gather(member.give(group.rank), into, root=member.root).wait(timeout=LIMIT)
    if into is not None:
        member.check(into, np.stack([member.give(rank) for rank in range(group.size)]))


def _scatter(member: Member) -> None:
    group = member.group
    into = np.zeros(member.length, np.uint64)
    blocks = member.give_blocks(group.rank) if group.rank == member.root else None
    group.scatter(blocks, into, root=member.root).wait(timeout=LIMIT)
    member.check(into, member.give(member.root, group.rank))


def _allgather(member: Member) -> None:
    group = member.group
    into = np.zeros((group.size, member.length), np.uint64)
    group.allgather(member.give(group.rank), into).wait(timeout=LIMIT)
    member.check(into, np.stack([member.give(rank) for rank in range(group.size)]))


def _alltoall(member: Member) -> None:
    group = member.group
    into = np.zeros((group.size, member.length), np.uint64)
    group.alltoall(member.give_blocks(group.rank), into).wait(timeout=LIMIT)
    member.check(into, np.stack([member.give(rank, group.rank) for rank in range(group.size)]))


def _reduce_scatter(member: Member) -> None:
    group = member.group
    into = np.zeros(member.length, np.uint64)
    group.reduce_scatter(member.give_blocks(group.rank), into).wait(timeout=LIMIT)
    member.check(into, member.sum_of(range(group.size), group.rank))


def _scan(member: Member) -> None:
    rank = member.group.rank
    member.check(member.group.scan(member.give(rank)).wait(timeout=LIMIT), member.sum_of(range(rank + 1)))


def _exscan(member: Member) -> None:
    rank = member.group.rank
    got = member.group.exscan(member.give(rank)).wait(timeout=LIMIT)
    member.check(got, member.sum_of(range(rank)) if rank else member.give(0))


TESTS: dict[str, Callable[[Member], None]] = {
    "join": _join,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "gather": _gather,
    "scatter": _scatter,
    "allgather": _allgather,
    "alltoall": _alltoall,
    "reduce_scatter": _reduce_scatter,
    "scan": _scan,
    "exscan": _exscan,
}


def multinode_coll(
    *, number: int, provider: str | None, tests: tuple[str, ...], iterations: int, size: int, as_json: bool
) -> None:
    """Run the tests in a job, which is started here unless this process is in one already."""
    if provider is not None and not ofipy.getinfo(provider=provider, ep_type="rdm"):
        raise NotRun(f"endpoint type rdm: {provider} lacks it")
    job = ofipy.job()
    with ofipy.open(provider=provider) as endpoint:
        try:
            group = job.group(endpoint)
        except ofipy.NotSupported as error:
            raise NotRun(f"capability groups: {error.message}") from None
        if job.launcher == "alone" and number > 1:
            job.close()
            start_job(number)
            return
        rows = []
        for name in tests or tuple(TESTS):
            member = Member(group, size)
            taken = _repeat(member, TESTS[name], iterations)
            rows.append({"test": name, "usec": [round(each / 1e3, 3) for each in taken]})
            if group.rank == 0 and not as_json:
                click.echo(
                    f"{name}: {iterations} repetitions, {group.size} processes, {8 * member.length} bytes, "
                    f"{min(taken) / 1e3:.1f} to {max(taken) / 1e3:.1f} usec"
                )
        # Nobody leaves before all have seen their results.
        group.barrier().wait(timeout=LIMIT)
        if group.rank == 0 and as_json:
            print_json(
                {
                    "version": 1,
                    "program": "multinode_coll",
                    "provider": endpoint.provider,
                    "processes": group.size,
                    "bytes": 8 * max(size // 8, 1),
                    "iterations": iterations,
                    "tests": rows,
                    "ofipy": ofipy.__version__,
                }
            )
        elif group.rank == 0:
            click.echo("GOOD: every result is right")


def _repeat(member: Member, test: Callable[[Member], None], iterations: int) -> list[int]:
    """Nanoseconds of each repetition at this process, its check included."""
    taken = []
    for member.repetition in range(iterations):
        begin = perf_counter_ns()
        test(member)
        taken.append(perf_counter_ns() - begin)
    return taken
