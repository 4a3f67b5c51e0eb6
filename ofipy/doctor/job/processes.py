# SPDX-License-Identifier: BSD-3-Clause
"""Rules on the processes of a host, out of their statistics pages and what the kernel says of them."""

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import ofipy
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.rules import RULES, find, judge
from ofipy.statistics.records import Endpoint, Process

__all__ = ["Look", "examine_processes", "look_at", "name_process", "read_states", "read_unread"]

_PAGE = "statistics page"
_MESSAGE = 256  # bytes that an unexpected message counts, beside its payload above 64 bytes
_STOPPED = frozenset("Tt")
_SOCKET = re.compile(r"socket:\[([0-9]{1,20})\]")


@dataclass(frozen=True, slots=True)
class Look:
    """All processes of this host at one moment."""

    now: float
    """Of :func:`time.monotonic`."""
    processes: tuple[Process, ...]
    states: Mapping[int, str]
    """By pid, one letter as of proc_pid_stat(5)."""
    unread: Mapping[int, int]
    """By pid, bytes that have arrived at its TCP sockets and that it has not read."""

    def find(self, process: Process) -> Process | None:
        """The same process in this look."""
        wanted = (process.pid, process.start_time)
        return next((each for each in self.processes if (each.pid, each.start_time) == wanted), None)


def look_at(processes: Iterable[Process]) -> Look:
    """The processes of this network namespace among these, and what the kernel says of them."""
    here = read_link("/proc/self/ns/net")
    own = tuple(
        each for each in processes if not each.ended and read_link(f"/proc/{each.pid}/ns/net") == here
    )
    pids = [each.pid for each in own]
    return Look(time.monotonic(), own, read_states(pids), read_unread(pids))


def read_link(path: str) -> str | None:
    """Where a link leads; None: it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def read_states(pids: Iterable[int]) -> dict[int, str]:
    """The state of each process, of those that are there."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as stat:
            found[pid] = stat.read().rpartition(")")[2].split()[0]
    return found


def read_unread(pids: Iterable[int]) -> dict[int, int]:
    """Bytes that wait in the TCP sockets of each process."""
    waiting: dict[str, int] = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/self/net/{name}") as table:
            for line in table.readlines()[1:]:
                cells = line.split()
                if len(cells) > 9 and cells[3] != "0A":  # of a listener it is a count of connections
                    waiting[cells[9]] = int(cells[4].partition(":")[2], 16)
    found = {}
    for pid in pids:
        total = 0
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                match = _SOCKET.fullmatch(read_link(f"/proc/{pid}/fd/{descriptor}") or "")
                total += waiting.get(match[1], 0) if match else 0
        found[pid] = total
    return found


def name_process(process: Process) -> str:
    """A process, for people."""
    program = "".join(each if each.isprintable() else "?" for each in process.program)[:60]
    rank = f" rank {process.rank}" if process.rank >= 0 else ""
    return f"pid {process.pid}{rank} {program}".strip()


def examine_processes(before: Look, now: Look) -> list[Finding]:
    """Apply the rules on processes that are there at both moments."""
    findings: list[Finding] = []
    for process in now.processes:
        earlier = before.find(process)
        if earlier is not None:
            findings += check_progress(before, now, earlier, process)
            findings += check_receiver(process)
            findings += check_ways(process)
    return findings


def check_progress(before: Look, now: Look, earlier: Process, process: Process) -> Iterator[Finding]:
    """Whether a process is stopped, or leaves what has arrived unread.

    A process that sleeps until a message comes makes no progress, and nothing is wrong with it.
    """
    place, rule = name_process(process), "app.no_progress"
    ages = [now.now - each.last_progress for each in process.endpoints if each.number and each.last_progress]
    age = min(ages, default=None)
    state = now.states.get(process.pid, "?")
    sources = (_PAGE, f"/proc/{process.pid}/stat")
    if state in _STOPPED and before.states.get(process.pid) in _STOPPED:
        text = "the process is stopped (SIGSTOP, a terminal, or a debugger)"
        text += f"; its last progress was {age:.1f} s ago" if age is not None else ""
        remedy = f"kill -CONT {process.pid}"
        yield find(
            rule, State.FAILED, text, place=place, sources=sources, remedy=remedy,
            measured=age, threshold=RULES[rule].warning,
        )  # fmt: skip
        return
    unread = min(before.unread.get(process.pid, 0), now.unread.get(process.pid, 0))
    moved = max((each.last_progress for each in process.endpoints), default=0.0) > max(
        (each.last_progress for each in earlier.endpoints), default=0.0
    )
    if age is None:
        return
    if unread and not moved:
        text = f"no progress for {age:.1f} s, and {unread} bytes wait in its sockets"
        yield judge(rule, age, text, place=place, sources=(*sources, "/proc/net/tcp"))
    else:
        yield find(
            rule, State.OK, f"last progress {age:.1f} s ago", place=place, sources=sources, measured=age
        )


def check_receiver(process: Process) -> Iterator[Finding]:
    """Whether messages that nobody receives fill the memory that is allowed for them."""
    bound = read_bound()
    worst = max(
        ((fill(each, bound), each) for each in process.endpoints if each.number),
        key=lambda pair: pair[0],
        default=None,
    )
    if worst is None or not worst[0]:
        return
    ratio, endpoint = worst
    text = (
        f"{endpoint.name}: {endpoint.counters.get('unexpected_messages', 0)} messages without a receive, "
        f"{endpoint.counters.get('unexpected_bytes', 0)} bytes of {bound}"
    )
    yield judge("app.slow_receiver", ratio, text, place=name_process(process), sources=(_PAGE,))


def read_bound() -> int:
    """``OFIPY_UNEXPECTED_SIZE`` here, which is that of the others unless they have set another one."""
    value = next(each.value for each in ofipy.parameters() if each.name == "OFIPY_UNEXPECTED_SIZE")
    return int(value) if value.isdecimal() and int(value) else 64 << 20


def fill(endpoint: Endpoint, bound: int) -> float:
    """The share of the bound that is in use."""
    counters = endpoint.counters
    messages = counters.get("unexpected_messages", 0) + counters.get("announced_messages", 0)
    return (counters.get("unexpected_bytes", 0) + _MESSAGE * messages) / bound


def check_ways(process: Process) -> Iterator[Finding]:
    """Whether one endpoint reaches some peers by verbs and others by tcp."""
    for endpoint in process.endpoints:
        ways = {peer.way for peer in endpoint.peers if peer.way}
        slow = [peer.address for peer in endpoint.peers if peer.way == "tcp"]
        if {"verbs", "tcp"} <= ways:
            text = f"{endpoint.name}: {len(slow)} of {len(endpoint.peers)} peers over tcp, such as {slow[0]}"
            remedy = "ofipy doctor HOST to one of them says whether verbs leads there"
            yield find(
                "app.way", State.WARNING, text, place=name_process(process), sources=(_PAGE,), remedy=remedy
            )
