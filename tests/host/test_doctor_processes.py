# SPDX-License-Identifier: BSD-3-Clause
"""Rules on processes: those that keep others waiting are named, by real processes as far as one host can have them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import ofipy
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.processes import (
    ProcessMoment,
    Threads,
    check_processes,
    is_waiting,
    read_bound,
    read_processes,
)
from ofipy.host.tree import Tree
from ofipy.statistics import Endpoint, Peer, Process, Reader
from tests.host.snapshots import endpoint, peer, process

LONG = 60.0  # seconds after which a test gives up
PROGRAM = """
import sys, ofipy
ep = ofipy.open(provider="tcp")
print(ep.address, flush=True)
exec(sys.argv[1])
for line in sys.stdin:
    pass
"""
RECEIVE = """
import threading
def receive():
    while True:
        ep.trecv(tag=1).wait()
threading.Thread(target=receive, daemon=True).start()
"""


@contextmanager
def program(what: str = "", **environment: str) -> Iterator[tuple[int, str]]:
    """A process with an endpoint: its pid and the address."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    try:
        assert child.stdout is not None
        yield child.pid, child.stdout.readline().strip()
    finally:
        child.kill()
        child.communicate(timeout=LONG)


def find_until(accept: Callable[[list[Finding]], bool], first: ProcessMoment | None = None) -> list[Finding]:
    """Look at all processes until the findings are as expected.

    Each look is compared with the one before, or with `first`: what is counted then grows, however slow this machine
    is.
    """
    end = time.monotonic() + LONG
    with Reader() as reader:
        before = first or read_processes(reader, Tree())
        while True:
            time.sleep(0.3)
            now = read_processes(reader, Tree())
            findings = list(check_processes(before, now))
            if accept(findings):
                return findings
            assert time.monotonic() < end, [(each.rule.id, each.place, each.text) for each in findings]
            before = first or now


def look_while_waiting() -> ProcessMoment:
    """A look at a moment when an operation of this process has not ended."""
    end = time.monotonic() + LONG
    with Reader() as reader:
        while True:
            now = read_processes(reader, Tree())
            own = next(each for each in now.processes.values() if each.pid == os.getpid())
            if any(is_waiting(each) for each in own.endpoints if each.number):
                return now
            assert time.monotonic() < end


def of(pid: int, findings: list[Finding]) -> dict[str, Finding]:
    """What was found in one process, by rule."""
    return {each.rule.id: each for each in findings if f"pid {pid}" in each.place}


class TestReal:
    def test_a_stopped_process_makes_no_progress(self) -> None:
        with program() as (pid, _):
            find_until(
                lambda found: of(pid, found)["app.no_progress"].state is State.OK if of(pid, found) else False
            )
            os.kill(pid, signal.SIGSTOP)
            found = find_until(
                lambda found: (
                    bool(of(pid, found)) and of(pid, found)["app.no_progress"].state is State.WARNING
                )
            )
            (finding,) = of(pid, found).values()
            assert finding.measured is not None
            assert finding.measured > 1
            assert finding.remedy == f"kill -CONT {pid}"
            os.kill(pid, signal.SIGCONT)
            find_until(
                lambda found: of(pid, found)["app.no_progress"].state is State.OK if of(pid, found) else False
            )

    def test_a_process_that_waits_for_a_message_is_in_order(self) -> None:
        with program("request = ep.trecv(tag=1)") as (pid, _), Reader() as reader:
            before = read_processes(reader, Tree())
            end = time.monotonic() + LONG
            while True:
                now = read_processes(reader, Tree())
                here = next(each for each in now.processes.values() if each.pid == pid)
                if now.time - here.endpoints[0].last_progress > 1.2:
                    break
                assert time.monotonic() < end
                time.sleep(0.1)
            assert {each.state for each in check_processes(before, now) if f"pid {pid}" in each.place} == {
                State.OK
            }

    def test_a_process_that_computes_while_messages_wait(self) -> None:
        compute = """
ep.close()
ep = ofipy.open(provider="tcp", progress="manual")
me = ep.insert(ep.address)
request = ep.tsend(bytes(4 << 20), me, tag=1)
request.test()
while True: pass
"""
        with program(compute) as (pid, _):
            found = find_until(
                lambda found: "app.no_progress" in of(pid, found) and of(pid, found)["app.no_progress"].is_bad
            )
            assert "computing" in of(pid, found)["app.no_progress"].text

    def test_a_receiver_that_posts_nothing(self) -> None:
        with program(OFIPY_UNEXPECTED_SIZE="64k") as (pid, address), ofipy.open(provider="tcp") as ep:
            there = ep.insert(address)
            for _ in range(60):
                ep.tsend(bytes(512), there, tag=1).wait(timeout=LONG)
            # A message may arrive after its send has ended.
            found = find_until(
                lambda found: (
                    "app.slow_receiver" in of(pid, found)
                    and ": 60 messages" in of(pid, found)["app.slow_receiver"].text
                )
            )
            finding = of(pid, found)["app.slow_receiver"]
            assert finding.state is State.WARNING
            assert finding.measured == pytest.approx(60 * (512 + 256) / (64 << 10))

    def test_a_peer_that_holds_up_a_sender(self) -> None:
        stop = threading.Event()
        with (
            program(RECEIVE) as one,
            program(RECEIVE) as two,
            program(RECEIVE) as three,
            program(RECEIVE) as slow,
            ofipy.open(provider="tcp") as ep,
        ):
            peers = [ep.insert(address) for _, address in (one, two, three, slow)]

            def send() -> None:
                waiting = {each: ep.tsend(bytes(1 << 20), each, tag=1) for each in peers}
                while not stop.is_set():
                    for each in peers:
                        if waiting[each].test():
                            waiting[each] = ep.tsend(bytes(1 << 20), each, tag=1)
                for request in waiting.values():
                    request.cancel()

            sender = threading.Thread(target=send)
            sender.start()
            try:
                wait_for_messages(4)
                os.kill(slow[0], signal.SIGSTOP)
                found = find_until(
                    lambda found: "app.peer_lag" in of(os.getpid(), found), look_while_waiting()
                )
                assert slow[1].removeprefix("tcp://") in of(os.getpid(), found)["app.peer_lag"].text
            finally:
                os.kill(slow[0], signal.SIGCONT)
                stop.set()
                sender.join(timeout=LONG)


def wait_for_messages(peers: int) -> None:
    """Until this process has sent each of its peers some."""
    end = time.monotonic() + LONG
    with Reader() as reader:
        while True:
            own = next((each for each in reader.scan().processes if each.pid == os.getpid()), None)
            open_ones = [each for each in own.endpoints if each.number] if own else []
            if any(len([p for p in each.peers if p.messages_sent > 20]) == peers for each in open_ones):
                return
            assert time.monotonic() < end
            time.sleep(0.05)


def moment(at: float, *processes: Process, states: str = "S", polls: bool = True) -> ProcessMoment:
    return ProcessMoment(
        at,
        {(each.pid, each.start_time): each for each in processes},
        {each.pid: Threads(states, polls, 1 << 20, 100) for each in processes},
    )


def check(before: Endpoint, now: Endpoint, **given: object) -> list[tuple[str, State]]:
    moments = (moment(9.0, process(7, before), **given), moment(10.0, process(7, now), **given))  # type: ignore[arg-type]
    return [(each.rule.id, each.state) for each in check_processes(*moments)]


OK = [("app.no_progress", State.OK)]


class TestJudged:
    def test_a_process_that_was_stopped_before_its_first_round(self) -> None:
        idle = endpoint(opened=5.0, last_progress=0.0)
        assert check(idle, idle, states="T", polls=False) == [("app.no_progress", State.WARNING)]

    def test_peers_by_tcp_beside_peers_by_verbs(self) -> None:
        both = endpoint(peers=(peer("a:1", 100, way="verbs"), peer("b:1", 100)))
        assert check(both, both) == [("app.way", State.WARNING)]
        named = endpoint(provider="link:shm+verbs+tcp", peers=(peer("b:1", 100),))
        assert check(named, named) == [("app.way", State.WARNING)]
        alone = endpoint(provider="link:shm+tcp", peers=(peer("b:1", 100), peer("c:1", 100, way="shm")))
        assert check(alone, alone) == OK

    def test_a_peer_that_gets_little_anyway(self) -> None:
        def sent(most: int, least: int, pending: int = 3) -> Endpoint:
            peers = tuple(Peer(name, "tcp", most, 0, 0, 0, 0) for name in "abc")
            return endpoint(pending=pending, peers=(*peers, Peer("d", "tcp", least, 0, 0, 0, 0)))

        assert check(sent(1000, 10), sent(2000, 10)) == OK  # its share is 10 of 3,010
        assert check(sent(1000, 1000), sent(2000, 1000)) == [("app.peer_lag", State.WARNING)]
        assert check(sent(1000, 1000), sent(2000, 1500)) == OK
        assert check(sent(1000, 1000, 0), sent(2000, 1000, 0)) == OK  # nothing waits for it

    def test_progress(self) -> None:
        idle = endpoint(last_progress=3.0)
        assert check(idle, idle, polls=False) == OK
        waits = endpoint(last_progress=3.0, unexpected_messages=2)
        assert check(waits, waits, polls=True) == OK
        assert check(waits, waits, polls=False) == [("app.no_progress", State.WARNING)]
        assert check(idle, idle, states="TT", polls=False) == [("app.no_progress", State.WARNING)]
        assert check(idle, idle, states="TS", polls=False) == OK

    def test_a_receiver_with_many_announced_messages(self) -> None:
        many = endpoint(unexpected_messages=60, announced_messages=60)
        assert check(many, many) == [("app.slow_receiver", State.WARNING)]
        assert check(endpoint(), many) == OK  # they may be received in a moment

    def test_a_process_that_has_just_begun_is_not_judged(self) -> None:
        assert list(check_processes(moment(9.0), moment(10.0, process(7, endpoint())))) == []


@pytest.mark.parametrize(
    ("environment", "bound"),
    [
        ("A=1?OFIPY_UNEXPECTED_SIZE=2m?B=", 2 << 20),
        ("OFIPY_UNEXPECTED_SIZE=0", 1),
        ("XOFIPY_UNEXPECTED_SIZE=3", 64 << 20),
    ],
)
def test_bounds_of_other_processes(environment: str, bound: int) -> None:
    assert read_bound(environment, "OFIPY_UNEXPECTED_SIZE") == bound
