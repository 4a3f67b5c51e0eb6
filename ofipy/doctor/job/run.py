# SPDX-License-Identifier: BSD-3-Clause
"""One process of ``ofipy doctor --job``: it measures in its pairs, and rank 0 gathers what all have found.

Rank 0 receives results as messages, each with a time limit, and not by an exchange of the job: a process that is
stopped must be named, not waited for.
"""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ofipy
from ofipy._discovery.av import Peer
from ofipy.doctor.congestion import check_tcp
from ofipy.doctor.document import describe_finding
from ofipy.doctor.examine import examine_host
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.host import Moment, read_host, read_moment
from ofipy.doctor.job.namespace import NamespaceReader
from ofipy.doctor.job.pairs import ROUND_SECONDS, Pair, count_rounds, measure_pair, read_pair
from ofipy.doctor.job.ranking import Standing, examine_pairs, rank_hosts
from ofipy.doctor.peer.wire import pack, parse, read_findings
from ofipy.doctor.processes import ProcessMoment, check_processes, read_processes
from ofipy.doctor.rules import find
from ofipy.host.tree import Tree
from ofipy.jobs.job import Job
from ofipy.ping.wire import WireError

__all__ = ["Examination", "JobDoctor", "name_hosts"]

_TAG_RESULT = 7
_MEET = 60.0
_GRACE = 10.0  # seconds for results to arrive, once their sender has looked at its host
_LEAST_SECONDS = (
    2.0  # between both looks at processes: one that makes no progress must be told from a busy one
)


@dataclass(slots=True)
class Examination:
    """What rank 0 knows at the end."""

    hosts: list[str]
    """By rank."""
    findings: list[Finding] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    """Ranks without a result."""


@dataclass(slots=True)
class _Before:
    """What the first process of a host has read before the rounds."""

    reader: NamespaceReader
    moment: Moment
    processes: ProcessMoment
    began: float


def name_hosts(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """The name of each rank's host; hosts of one name are numbered, as containers often have."""
    known: dict[tuple[str, str], str] = {}
    for name, number in zip(names, ids, strict=True):
        if (name, number) not in known:
            alike = sum(each == name for each, _ in known)
            known[name, number] = f"{name}~{alike + 1}" if alike else name
    return [known[each] for each in zip(names, ids, strict=True)]


class JobDoctor:
    """One process.

    Parameters
    ----------
    job : Job
        That it has joined.
    tree : Tree
        Its host.
    provider : str, optional
        Provider by name. Default: as configured.
    """

    def __init__(self, job: Job, tree: Tree, provider: str | None) -> None:
        self._job = job
        self._tree = tree
        self.endpoint = ofipy.open(provider=provider)
        try:
            self._peers: list[Peer] = job.peers(self.endpoint, timeout=_MEET)
            own = self.endpoint.address
            said = json.dumps([os.getpid(), [name for name, _ in own.entries], own.host.hex()])
            self._known: list[Any] = [json.loads(each) for each in job.exchange(said.encode(), timeout=_MEET)]
            self._hosts = name_hosts(job.hosts, [each[2] for each in self._known])
        except BaseException:
            self.endpoint.close(linger=0)
            raise

    def run(self) -> Examination | None:
        """Measure, and hand over what was found. Only rank 0 has a result.

        Raises
        ------
        ofipy.FabricError
            When rank 0 does not take this process's result.
        """
        job, size = self._job, self._job.size
        before = self._look_before() if job.local_rank == 0 else None
        job.barrier(timeout=_MEET)
        start = time.monotonic()
        pairs = []
        for number in range(count_rounds(size)):
            pair = measure_pair(
                self.endpoint, self._peers, job.rank, number, start + (number + 1) * ROUND_SECONDS
            )
            if pair is not None:
                pair.both_have_verbs = all(
                    "verbs" in self._known[rank][1] for rank in (job.rank, pair.partner)
                )
                pairs.append(pair)
        result: dict[str, Any] = {"pairs": [each.as_dict() for each in pairs]}
        if before is not None:
            time.sleep(max(0.0, before.began + _LEAST_SECONDS - time.monotonic()))
        began = time.monotonic()
        receives = self._post_receives() if job.rank == 0 else {}
        if before is not None:
            result |= self._look_again(before)
        # A busy host takes long to look at its processes. Another one may take two times as long as this one.
        patience = _GRACE + 2 * (time.monotonic() - began)
        until = max(start + count_rounds(size) * ROUND_SECONDS, time.monotonic()) + patience
        if job.rank != 0:
            self.endpoint.tsend(pack(result), self._peers[0], tag=_TAG_RESULT, complete="delivery").wait(
                timeout=until - time.monotonic()
            )
            return None
        return self._gather(parse(pack(result)), receives, until)

    def _look_before(self) -> _Before:
        reader = NamespaceReader()
        return _Before(
            reader,
            read_moment(self._tree),
            read_processes(reader, self._tree),
            time.monotonic(),
        )

    def _look_again(self, before: _Before) -> dict[str, Any]:
        """What the first process of a host finds there."""
        with before.reader as reader:
            processes = read_processes(reader, self._tree)
        host = read_host(self._tree, before.moment, time.monotonic() - before.began)
        findings = [
            *examine_host(host),
            *check_tcp(host, is_measured=True),
            *check_processes(before.processes, processes),
        ]
        return {"findings": [describe_finding(each) for each in findings]}

    def _post_receives(self) -> dict[int, ofipy.MessageRequest]:
        """Rank 0: a receive for the result of each other rank, which arrives while this process looks at its host."""
        return {
            rank: self.endpoint.trecv(peer, tag=_TAG_RESULT) for rank, peer in enumerate(self._peers) if rank
        }

    def _gather(
        self, own: dict[str, Any], receives: dict[int, ofipy.MessageRequest], until: float
    ) -> Examination:
        """Rank 0: what all have found."""
        known = Examination(self._hosts)
        results: dict[int, dict[str, Any]] = {0: own}
        for rank, receive in receives.items():
            try:
                results[rank] = parse(bytes(receive.wait(timeout=max(0.0, until - time.monotonic())).data))
            except (ofipy.FabricError, WireError) as error:
                receive.cancel()
                known.missing.append(rank)
                known.findings.append(self._judge_missing(rank, error))
        for rank, result in results.items():
            known.findings += read_findings(result, known.hosts[rank])
            said = result.get("pairs")
            known.pairs += (
                [read_pair(each) for each in said if isinstance(each, dict)] if isinstance(said, list) else []
            )
        known.pairs = [each for each in known.pairs if 0 <= each.rank < self._job.size > each.partner >= 0]
        known.standings = rank_hosts(known.pairs, known.hosts)
        known.findings += examine_pairs(known.pairs, known.hosts, known.missing)
        return known

    def _judge_missing(self, rank: int, error: Exception) -> Finding:
        """A process that has given no result."""
        is_late = isinstance(error, ofipy.TimedOut)
        said = "gave no result in time" if is_late else f"was lost: {getattr(error, 'message', error)}"
        text = f"rank {rank} of this measurement, pid {self._known[rank][0]}, {said}"
        place = f"{self._hosts[rank]} rank {rank}"
        return find("app.no_progress", State.FAILED, text, place=place, sources=("its result",))

    def close(self) -> None:
        """Close the endpoint."""
        self.endpoint.close(linger=0)
