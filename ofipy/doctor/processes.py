# SPDX-License-Identifier: BSD-3-Clause
"""Rules on processes that use ofipy, by their statistics pages at two moments."""

import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.parameter import parameter
from ofipy.doctor.rules import LEAST_MESSAGES, LEAST_PEERS, find, judge
from ofipy.host.tree import Tree
from ofipy.statistics import Endpoint, Peer, Process, Snapshot
from ofipy.statistics.scanner import Scanner

__all__ = ["ProcessMoment", "Threads", "check_processes", "is_waiting", "read_processes"]

_BYTES, _ANNOUNCEMENTS = "OFIPY_UNEXPECTED_SIZE", "OFIPY_ANNOUNCEMENTS"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_OVERHEAD = 256  # bytes that an unexpected message takes besides its payload
_STOPPED = frozenset("Tt")
_LANES = re.compile(r"\bverbs\b")


@dataclass(frozen=True, slots=True)
class Threads:
    """What the kernel says of a process besides its page."""

    states: str
    """A letter for each thread, proc_pid_stat(5)."""
    polls: bool
    """A thread waits for descriptors, as a thread does that makes progress; also if the kernel does not say."""
    most_bytes: int
    """Bound of an endpoint on the memory of unexpected messages."""
    most_announcements: int
    """Bound of an endpoint on messages whose payload is still at the sender."""


@dataclass(frozen=True, slots=True)
class ProcessMoment:
    """All processes at one time."""

    time: float
    """Seconds of ``time.monotonic()``."""
    processes: Mapping[tuple[int, int], Process]
    """By pid and start."""
    threads: Mapping[int, Threads]
    """By pid."""


def read_processes(scanner: Scanner, tree: Tree) -> ProcessMoment:
    """Read the pages of all processes, and what their threads do."""
    snapshot: Snapshot = scanner.scan()
    alive = [each for each in snapshot.processes if not each.ended]
    return ProcessMoment(
        time=time.monotonic(),
        processes={(each.pid, each.start_time): each for each in alive},
        threads={each.pid: read_threads(tree, each.pid) for each in alive},
    )


def read_threads(tree: Tree, pid: int) -> Threads:
    """The threads of a process; nothing of one that has ended meanwhile."""
    tasks = [f"proc/{pid}/task/{task}" for task in tree.names(f"proc/{pid}/task")]
    states = [(tree.line(f"{task}/stat") or "").rpartition(") ")[2][:1] for task in tasks]
    # A thread that runs waits for nothing. Of one that sleeps the kernel says nothing (0) to those who may not know.
    waits = [tree.line(f"{task}/wchan") for task, state in zip(tasks, states, strict=True) if state != "R"]
    environment = tree.text(f"proc/{pid}/environ") or ""
    return Threads(
        states="".join(states),
        polls=any(each in (None, "0") or "poll" in each for each in waits),
        most_bytes=read_bound(environment, _BYTES),
        most_announcements=read_bound(environment, _ANNOUNCEMENTS),
    )


def read_bound(environment: str, name: str) -> int:
    """A size that a process was started with, or else that of this process.

    Between variables of an environment a tree has question marks in place of zeros.
    """
    number = r"([0-9]{1,15})([kmg]?)"
    match = re.search(rf"(?:^|\?){name}={number}(?=\?|$)", environment, re.IGNORECASE)
    match = match or re.fullmatch(number, parameter(name), re.IGNORECASE)
    # A bound of nothing is full with the first message.
    return max(1, int(match[1]) * _UNITS[match[2].lower()]) if match else sys.maxsize


def check_processes(before: ProcessMoment, now: ProcessMoment) -> Iterator[Finding]:
    """Every rule for each process that was there at both moments. One in which nothing is wrong has one row."""
    for key, process in now.processes.items():
        earlier = before.processes.get(key)
        if earlier is None:
            continue
        threads = now.threads[process.pid]
        bad = [
            *check_progress(process, threads, before.threads[process.pid], now.time),
            *check_receiver(earlier, process, threads),
            *check_peers(earlier, process),
            *check_ways(process),
        ]
        if bad:
            yield from bad
        else:
            yield find("app.no_progress", State.OK, say_process(process), place=name_process(process))


def name_process(process: Process) -> str:
    """What people call it."""
    rank = f"rank {process.rank}, " if process.rank >= 0 else ""
    return f"{rank}pid {process.pid}"


def say_process(process: Process) -> str:
    """Its program, and how much it has open."""
    open_ones = [each for each in process.endpoints if each.number]
    waiting = sum(map(count_waiting, open_ones))
    return f"{process.program or 'a program'}: {len(open_ones)} endpoints, {waiting} messages wait"


def count_waiting(endpoint: Endpoint) -> int:
    """Messages and operations that somebody waits for."""
    names = ("pending", "backlog", "unexpected_messages", "announced_messages")
    return sum(endpoint.counters.get(name, 0) for name in names)


def check_progress(process: Process, threads: Threads, before: Threads, time_now: float) -> Iterator[Finding]:
    """Whether messages wait for a process that does not look after them.

    A process that waits for descriptors is woken by the next message, however long ago the last one was.
    """
    stopped = bool(threads.states) and set(threads.states) <= _STOPPED
    if not stopped and (threads.polls or before.polls):
        return
    for endpoint in process.endpoints:
        waiting = count_waiting(endpoint)
        if not endpoint.number or not (waiting or stopped):
            continue
        age = time_now - max(endpoint.last_progress, endpoint.opened)
        doing = "stopped by a signal" if stopped else f"computing or sleeping (state {threads.states[:1]})"
        text = f"{process.program}: {doing}; last progress {age:.1f} s ago, {waiting} messages wait"
        remedy = f"kill -CONT {process.pid}" if stopped else None
        finding = judge(
            "app.no_progress",
            age,
            text,
            place=name_process(process),
            sources=source_of(process),
            remedy=remedy,
        )
        if finding.is_bad:
            yield finding
            return


def source_of(process: Process) -> tuple[str, ...]:
    """Where the figures come from."""
    return (f"proc/{process.pid}/fd: ofipy-stats",)


def check_receiver(earlier: Process, process: Process, threads: Threads) -> Iterator[Finding]:
    """Whether messages without a receive fill what an endpoint keeps of them, at both moments."""
    old = {each.number: fill_of(each, threads) for each in earlier.endpoints if each.number}
    for endpoint in process.endpoints:
        filled = min(fill_of(endpoint, threads), old.get(endpoint.number, 0.0))
        count, announced = (
            endpoint.counters.get(each, 0) for each in ("unexpected_messages", "announced_messages")
        )
        text = f"{process.program}: {count} messages wait for a receive, {announced} of them at their senders"
        place = f"{name_process(process)}, endpoint {endpoint.number}"
        finding = judge("app.slow_receiver", filled, text, place=place, sources=source_of(process))
        if finding.is_bad:
            yield finding


def fill_of(endpoint: Endpoint, threads: Threads) -> float:
    """How much of a bound is used, of that which is nearer: memory, or announced messages."""
    counters = endpoint.counters
    announced = counters.get("announced_messages", 0)
    kept = counters.get("unexpected_messages", 0) - announced
    memory = counters.get("unexpected_bytes", 0) + _OVERHEAD * max(kept, 0)
    return max(memory / threads.most_bytes, announced / threads.most_announcements)


def check_peers(earlier: Process, process: Process) -> Iterator[Finding]:
    """Whether one peer holds up an endpoint: it takes far less than its share, while operations wait.

    Programs send different amounts to different peers. So a peer is compared with its own share before, and with what
    the other peers get now.
    """
    old = {each.number: each for each in earlier.endpoints}
    for endpoint in process.endpoints:
        last = old.get(endpoint.number)
        if not endpoint.number or last is None or not (is_waiting(last) and is_waiting(endpoint)):
            continue
        had = {peer.address: peer for peer in last.peers}
        pairs = [(had[peer.address], peer) for peer in endpoint.peers if peer.address in had and peer.way]
        new = sum(peer.messages_sent - prior.messages_sent for prior, peer in pairs)
        total = sum(prior.messages_sent for prior, _ in pairs)
        if len(pairs) < LEAST_PEERS or not total:
            continue
        for prior, peer in pairs:
            finding = judge_peer(process, endpoint, prior, peer, new * prior.messages_sent / total)
            if finding.is_bad:
                yield finding


def is_waiting(endpoint: Endpoint) -> bool:
    """Whether operations have not ended."""
    return endpoint.counters.get("pending", 0) + endpoint.counters.get("backlog", 0) > 0


def judge_peer(process: Process, endpoint: Endpoint, prior: Peer, peer: Peer, share: float) -> Finding:
    """How many times less a peer takes than its share."""
    sent = peer.messages_sent - prior.messages_sent
    behind = share / max(sent, 1) if share >= LEAST_MESSAGES else 0.0
    text = f"{process.program}: peer {peer.address} took {sent} messages, its share is {share:.0f}; "
    text += f"{count_waiting(endpoint)} wait"
    place = f"{name_process(process)}, endpoint {endpoint.number}"
    return judge("app.peer_lag", behind, text, place=place, sources=source_of(process))


def check_ways(process: Process) -> Iterator[Finding]:
    """Whether some peers are reached by TCP although the endpoint has RDMA devices."""
    for endpoint in process.endpoints:
        ways = [peer.way for peer in endpoint.peers]
        slow = [peer.address for peer in endpoint.peers if peer.way == "tcp"]
        if not slow or not endpoint.number:
            continue
        fast = ways.count("verbs")
        if fast or _LANES.search(endpoint.provider):
            some = ", ".join(slow[:3]) + " and others" * (len(slow) > 3)
            text = f"{process.program}: {some} go by tcp, {fast} peers by verbs"
            remedy = f"ofipy doctor {slow[0].rpartition(':')[0]} says why verbs does not reach it"
            place = f"{name_process(process)}, endpoint {endpoint.number}"
            yield find("app.way", State.WARNING, text, place=place, sources=source_of(process), remedy=remedy)
