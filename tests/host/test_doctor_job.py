# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --job``: rounds of pairs, the ranking of hosts, rules on processes, and jobs of this host."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.doctor.congestion import check_tcp
from ofipy.doctor.finding import State
from ofipy.doctor.host import NETWORK, Host, Moment
from ofipy.doctor.job.namespace import NamespaceReader
from ofipy.doctor.job.pairs import Pair, count_rounds, find_partner, read_pair
from ofipy.doctor.job.ranking import examine_pairs, rank_hosts
from ofipy.host.counter import Counter, build_counter
from ofipy.host.tree import Tree

SECONDS = 100


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


class TestLosses:
    """On a host with a card, unless it is a network of software."""

    def judge(self, sent: int, repeated: int, guessed: int = 0, *, software: bool = False) -> State:
        before = Moment({NETWORK: self.counters(1000, 100, 7)})
        now = Moment({NETWORK: self.counters(1000 + sent, 100 + repeated, 7 + guessed)})
        host = Host(Tree(), (), now, before, 1.0, is_guest=software, nodes=(0,))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Host, "interfaces", lambda _: ["ens1"])
            (finding,) = check_tcp(host, is_measured=True)
            (alone,) = check_tcp(host)
        assert alone.state is (State.WARNING if finding.state is State.FAILED else finding.state)
        return finding.state

    def counters(self, sent: int, repeated: int, guessed: int) -> dict[str, Counter]:
        values = {"OutSegs": sent, "RetransSegs": repeated, "TCPLossProbes": guessed}
        return {name: build_counter(name, value, "proc/net/snmp") for name, value in values.items()}

    @pytest.mark.parametrize(
        ("sent", "repeated", "guessed", "state"),
        [
            (0, 0, 0, State.OK),
            (10_000, 0, 0, State.OK),
            (200, 9, 0, State.OK),
            (10_000, 20, 0, State.WARNING),
            (10_000, 20, 12, State.OK),
            (10_000, 200, 0, State.FAILED),
            (10_000, 200, 300, State.OK),
        ],
    )
    def test_thresholds(self, sent: int, repeated: int, guessed: int, state: State) -> None:
        assert self.judge(sent, repeated, guessed) is state

    def test_a_network_of_software_may_lose_more(self) -> None:
        states = [self.judge(10_000, repeated, software=True) for repeated in (99, 101, 1001)]
        assert states == [State.OK, State.WARNING, State.FAILED]


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


def wait_until_stopped(pid: int) -> None:
    """A signal takes effect when the process runs next; after that its last progress grows old."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "T":
        time.sleep(0.001)


def of_processes(found: dict[str, Any], pid: int) -> list[str]:
    return [
        each["id"]
        for each in found["checks"]
        if each["state"] in ("warning", "failed") and re.search(rf"pid {pid}\b", each["place"])
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
        wait_until_stopped(application.pid)
        found = document(run("-n", "2", *DOCTOR, "--json", OFIPY_PROVIDER="shm")[0])
        assert of_processes(found, application.pid) == ["app.no_progress"]
        application.send_signal(signal.SIGCONT)
        with ofipy.open(provider="tcp") as ep:
            ep.tsend(b"again", ep.insert(address), tag=1, complete="delivery").wait(timeout=SECONDS)
        found = document(run("-n", "2", *DOCTOR, "--json", OFIPY_PROVIDER="shm")[0])
        assert of_processes(found, application.pid) == []

    def test_only_processes_of_this_network_namespace(self, application: subprocess.Popen[str]) -> None:
        assert application.stdout is not None
        application.stdout.readline()
        with NamespaceReader() as reader, ofipy.open(provider="shm"):
            pids = [each.pid for each in reader.scan().processes]
        assert application.pid in pids
        assert os.getpid() not in pids
