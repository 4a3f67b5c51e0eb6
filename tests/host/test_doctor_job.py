# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --job``: rounds of pairs, the ranking of hosts, rules on processes, and jobs of this host."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.doctor.finding import State
from ofipy.doctor.job.lag import Traffic, examine_lag, read_traffic
from ofipy.doctor.job.losses import Segments, judge_losses, read_segments
from ofipy.doctor.job.pairs import Pair, count_rounds, find_partner, read_pair
from ofipy.doctor.job.processes import Look, examine_processes, look_at, read_states
from ofipy.doctor.job.ranking import examine_pairs, rank_hosts
from ofipy.host.tree import Tree
from ofipy.statistics import Endpoint, Peer, Process, Reader

SECONDS = 100
COUNTERS = {"unexpected_messages": 0, "unexpected_bytes": 0, "announced_messages": 0}


class TestRounds:
    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 13, 16, 100])
    def test_every_process_is_joined_with_every_other_one(self, size: int) -> None:
        rounds = count_rounds(size)
        assert rounds == (math.ceil(math.log2(size)) if size > 1 else 0)
        known = [{rank} for rank in range(size)]
        for number in range(rounds):
            for rank in range(size):
                partner = find_partner(rank, number, size)
                if partner is not None:
                    assert find_partner(partner, number, size) == rank
                    known[rank] = known[partner] = known[rank] | known[partner]
        met = known[0]
        for _ in range(size):  # those without a partner in a late round hear through others
            for each in known:
                met = met | each if met & each else met
        assert met == set(range(size))

    def test_what_another_process_says_is_checked(self) -> None:
        pair = Pair(3, 2, "tcp", True, 1e-5, 2e-5, 1e9, 2e9, "")
        assert read_pair(json.loads(json.dumps(pair.as_dict()))) == pair
        assert read_pair({"rank": "3", "way": 7, "sent": None}) == Pair(0, 0)


class TestRanking:
    HOSTS = ("a", "a", "b", "b", "c", "c")

    def pairs(self, slow: str, factor: float, error: str = "") -> list[Pair]:
        found = []
        for rank, partner in ((0, 2), (1, 3), (0, 4), (2, 4), (3, 5), (0, 1)):
            hurt = slow in (self.HOSTS[rank], self.HOSTS[partner]) and self.HOSTS[rank] != self.HOSTS[partner]
            times = factor if hurt else 1.0
            found.append(
                Pair(
                    rank,
                    partner,
                    "tcp",
                    False,
                    None if hurt and error else 1e-4 * times,
                    1e-3,
                    1e9 / times,
                    1e9,
                )
            )
            found[-1].error = error if hurt else ""
        return found

    @pytest.mark.parametrize("slow", ["a", "b", "c"])
    def test_the_slow_host_is_first(self, slow: str) -> None:
        standings = rank_hosts(self.pairs(slow, 8.0), self.HOSTS)
        assert standings[0].name == slow
        assert standings[0].slowness is not None
        assert standings[0].slowness > 1

    def test_failed_pairs_come_before_slow_ones(self) -> None:
        standings = rank_hosts(self.pairs("b", 1.0, "no answer in time"), self.HOSTS)
        assert (standings[0].name, standings[0].failed) == ("b", 4)
        assert standings[0].slowness is None

    def test_one_host_ranks_its_processes(self) -> None:
        pairs = [
            Pair(0, 1, "shm", False, 1e-6, 1e-6, 1e9, 1e9),
            Pair(2, 3, "shm", False, 9e-6, 9e-6, 1e8, 1e9),
        ]
        assert rank_hosts(pairs, ["a"] * 4)[0].name in ("rank 2", "rank 3")

    def test_findings_of_pairs(self) -> None:
        pairs = [Pair(0, 1, error="no answer in time"), Pair(2, 3, "tcp", True), Pair(3, 2, "tcp", True)]
        found = list(examine_pairs(pairs, self.HOSTS, []))
        assert [(each.rule.id, each.state) for each in found] == [
            ("net.port", State.FAILED),
            ("app.way", State.WARNING),
        ]
        # A process that is named as missing needs no second finding.
        assert [each.rule.id for each in examine_pairs(pairs, self.HOSTS, [1])] == ["app.way"]


def endpoint(last: float = 100.0, peers: tuple[Peer, ...] = (), **counters: int) -> Endpoint:
    return Endpoint(1, "tcp", "tcp://a:1", 1.0, last, COUNTERS | counters, {}, peers)


def process(pid: int, *endpoints: Endpoint) -> Process:
    return Process(pid, 1, "program", "job", 3, False, endpoints)


def look(now: float, each: Process, state: str = "S", unread: int = 0) -> Look:
    return Look(now, (each,), {each.pid: state}, {each.pid: unread})


class TestProcesses:
    def findings(self, before: Look, now: Look) -> dict[str, Any]:
        return {each.rule.id: each for each in examine_processes(before, now) if each.is_bad}

    def test_a_process_that_waits_is_well(self) -> None:
        asleep = process(7, endpoint(last=1.0))
        assert self.findings(look(100, asleep), look(102, asleep)) == {}

    def test_stopped(self) -> None:
        asleep = process(7, endpoint(last=100.0))
        found = self.findings(look(101, asleep, "T"), look(103, asleep, "T"))
        assert list(found) == ["app.no_progress"]
        finding = found["app.no_progress"]
        assert (finding.state, finding.remedy) == (State.FAILED, "kill -CONT 7")
        assert finding.place == "pid 7 rank 3 program"
        assert finding.measured == pytest.approx(3.0)
        # A debugger that looked in for a moment is none.
        assert self.findings(look(101, asleep, "T"), look(103, asleep, "S")) == {}

    def test_messages_wait(self) -> None:
        busy = process(7, endpoint(last=100.0))
        found = self.findings(look(101, busy, "R", 4000), look(103, busy, "R", 5000))
        assert list(found) == ["app.no_progress"]
        assert "4000 bytes wait" in found["app.no_progress"].text
        # It reads: what waits now is new.
        moving = process(7, endpoint(last=102.9))
        assert self.findings(look(101, busy, "R", 4000), look(103, moving, "R", 5000)) == {}

    def test_slow_receiver(self) -> None:
        full = process(7, endpoint(last=103.0, unexpected_messages=10, unexpected_bytes=40 << 20))
        found = self.findings(look(101, full), look(103, full))
        assert list(found) == ["app.slow_receiver"]
        assert found["app.slow_receiver"].measured == pytest.approx(40 / 64, abs=0.01)

    def test_two_ways(self) -> None:
        peers = tuple(Peer(f"tcp://b:{n}", way, 1, 1, 1, 1, 0) for n, way in enumerate(("verbs", "tcp")))
        mixed = process(7, endpoint(last=103.0, peers=peers))
        assert list(self.findings(look(101, mixed), look(103, mixed))) == ["app.way"]

    def test_one_that_has_just_begun_is_not_judged(self) -> None:
        young = process(7, endpoint(last=1.0))
        assert examine_processes(Look(1, (), {}, {}), look(103, young, "T")) == []


class TestLag:
    def rows(self, lag: int, still: bool = True) -> list[Traffic]:
        rows = []
        for number in range(5):
            behind = lag if number == 2 else 1
            rows.append(Traffic("h pid 1", "a", f"p{number}", 1000, 0, 0))
            received = 1000 - behind
            rows.append(
                Traffic(f"h pid {number + 10}", f"p{number}", "a", 0, received, received - (not still))
            )
        return rows

    def test_one_is_behind(self) -> None:
        (finding,) = [each for each in examine_lag(self.rows(500)) if each.is_bad]
        assert (finding.rule.id, finding.place, finding.measured) == ("app.peer_lag", "h pid 12", 500)

    def test_one_that_receives_is_busy(self) -> None:
        assert list(examine_lag(self.rows(500, still=False))) == []

    def test_none_is_behind(self) -> None:
        assert not any(each.is_bad for each in examine_lag(self.rows(9)))

    def test_what_others_say(self) -> None:
        rows = self.rows(5)
        assert read_traffic(json.loads(json.dumps([each.as_list() for each in rows]))) == rows
        assert read_traffic([1, [2], [1, 2, 3, "x", None, True]]) == [Traffic("", "", "", 0, 0, 0)]
        assert read_traffic("none") == []


class TestLosses:
    @pytest.mark.parametrize(
        ("sent", "repeated", "states"),
        [
            (50, 50, []),
            (10_000, 0, [State.OK]),
            (200, 9, [State.OK]),
            (10_000, 20, [State.WARNING]),
            (10_000, 200, [State.FAILED]),
        ],
    )
    def test_thresholds(self, sent: int, repeated: int, states: list[State]) -> None:
        found = judge_losses(Segments(1000, 100), Segments(1000 + sent, 100 + repeated))
        assert [each.state for each in found] == states

    def test_this_host(self) -> None:
        assert read_segments(Tree()).sent >= 0


def run(*words: str, code: int | None = 0, **environment: str) -> tuple[str, str]:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", "run", *words],
        env=os.environ | {"OFIPY_LOG": "error"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert code is None or ran.returncode == code, (ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout, ran.stderr


DOCTOR = (sys.executable, "-P", "-m", "ofipy", "doctor", "--job")


def document(out: str) -> dict[str, Any]:
    """What rank 0 printed, without the numbers that ``ofipy run`` writes before lines."""
    found: dict[str, Any] = json.loads("\n".join(line.removeprefix("[0] ") for line in out.splitlines()))
    assert found["schema"] == 1
    return found


def of_processes(found: dict[str, Any], pid: int) -> list[str]:
    return [
        each["id"]
        for each in found["checks"]
        if each["state"] in ("warning", "failed") and f"pid {pid} " in each["place"]
    ]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that answers messages, as a job has them; ready once it has printed its address."""
    script = tmp_path / "application.py"
    script.write_text(
        textwrap.dedent("""
        import sys, ofipy
        with ofipy.open(provider="tcp", node="127.0.0.1") as ep:
            print(ep.address, flush=True)
            while True:
                message = ep.trecv(tag=1).wait()
        """)
    )
    running = subprocess.Popen([sys.executable, "-P", str(script)], stdout=subprocess.PIPE, text=True)
    yield running
    running.kill()
    running.wait()
    assert running.stdout is not None
    running.stdout.close()


class TestJobs:
    @pytest.mark.parametrize("number", ["1", "4"])
    @pytest.mark.parametrize("provider", ["shm", "tcp"])
    def test_nothing_is_found(self, number: str, provider: str) -> None:
        found = document(run("-n", number, *DOCTOR, "--json", OFIPY_PROVIDER=provider)[0])
        assert found["launcher"] == "ofipy run"
        assert len(found["pairs"]) == (8 if number == "4" else 0)
        assert all(
            each["sent"] > 0 and each["way"] == provider and not each["error"] for each in found["pairs"]
        )
        assert [each["failed"] for each in found["hosts"]] == [0] * int(number)
        between = [
            each for each in found["checks"] if each["id"].startswith(("net.", "ladder.", "port.retransmit"))
        ]
        assert not [each for each in between if each["state"] in ("warning", "failed")]

    def test_the_table(self) -> None:
        out, _ = run("-n", "2", *DOCTOR, OFIPY_PROVIDER="shm", COLUMNS="200")
        assert "hosts, slowest first" in out
        assert "rank 1" in out

    def test_alone(self) -> None:
        ran = subprocess.run(
            [*DOCTOR, "--json"],
            env=os.environ | {"OFIPY_PROVIDER": "shm"},
            capture_output=True,
            timeout=SECONDS,
        )
        assert json.loads(ran.stdout)["pairs"] == []

    def test_a_stopped_process_is_named(self, application: subprocess.Popen[str]) -> None:
        assert application.stdout is not None
        address = application.stdout.readline().strip()
        application.send_signal(signal.SIGSTOP)
        while read_states([application.pid]) != {application.pid: "T"}:
            pass
        found = document(run("-n", "2", *DOCTOR, "--json", OFIPY_PROVIDER="shm", code=1)[0])
        assert of_processes(found, application.pid) == ["app.no_progress"]
        application.send_signal(signal.SIGCONT)
        with ofipy.open(provider="tcp") as ep:
            ep.tsend(b"again", ep.insert(address), tag=1, complete="delivery").wait(timeout=SECONDS)
        found = document(run("-n", "2", *DOCTOR, "--json", OFIPY_PROVIDER="shm")[0])
        assert of_processes(found, application.pid) == []

    def test_unread_bytes_are_seen(self, application: subprocess.Popen[str]) -> None:
        assert application.stdout is not None
        address = application.stdout.readline().strip()
        with ofipy.open(provider="tcp") as ep, Reader() as reader:
            peer = ep.insert(address)
            ep.tsend(b"first", peer, tag=1, complete="delivery").wait(timeout=SECONDS)
            application.send_signal(signal.SIGSTOP)
            while read_states([application.pid]) != {application.pid: "T"}:
                pass
            ep.tsend(bytes(1000), peer, tag=1).wait(timeout=SECONDS)
            while look_at(reader.scan().processes).unread.get(application.pid, 0) < 1000:
                pass
