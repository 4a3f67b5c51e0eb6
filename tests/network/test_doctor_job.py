# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --job`` on three hosts: one loses packets, and a process of a job there is stopped. Both are named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import Network, Wire

from ofipy.statistics import Reader

SECONDS = 150
PROMPT = 15
"""Seconds after the findings in which all processes of the doctor end."""
PER_HOST = int(os.environ.get("TEST_RANKS_PER_HOST", "2"))
"""Processes of the application on each of two hosts; 8 in the full profile."""

APPLICATION = """
import sys, time, ofipy
job = ofipy.job()
with ofipy.open(provider="tcp") as ep:
    peers = job.peers(ep)
    receive = ep.trecv(tag=1)
    while True:
        for rank, peer in enumerate(peers):
            if rank != job.rank:
                ep.tsend(b"work", peer, tag=1)
        while receive.done:
            receive.wait()
            receive = ep.trecv(tag=1)
        time.sleep(0.1)
"""


class Job:
    """Processes as torchrun starts them, on given hosts."""

    def __init__(self, wires: list[Wire], per_host: int, port: int, *words: str, key: Path) -> None:
        size = len(wires) * per_host
        self.processes = [
            subprocess.Popen(
                wires[rank // per_host].host.inside(sys.executable, "-P", *words),
                env=os.environ
                | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank % per_host)}
                | {"LOCAL_WORLD_SIZE": str(per_host), "MASTER_ADDR": wires[0].v4, "MASTER_PORT": str(port)}
                | {"OFIPY_AUTH_KEY_FILE": str(key), "OFIPY_PROVIDER": "tcp", "OFIPY_LOG": "error"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=tempfile.gettempdir(),
            )
            for rank in range(size)
        ]

    def wait_until_met(self) -> None:
        """Wait until each process has exchanged messages with all others."""
        pids = {each.pid for each in self.processes}
        with Reader() as reader:
            while True:
                assert all(each.poll() is None for each in self.processes), self.errors()
                met = {
                    process.pid
                    for process in reader.scan().processes
                    for endpoint in process.endpoints
                    if sum(peer.messages_received > 0 for peer in endpoint.peers) == len(pids) - 1
                }
                if pids <= met:
                    return
                time.sleep(0.1)  # the processes need the cores

    def errors(self) -> list[str]:
        self.end()
        return [each.communicate()[1] for each in self.processes]

    def result(self) -> tuple[int, dict[str, Any]]:
        """Exit code and document of rank 0."""
        out, error = self.processes[0].communicate(timeout=SECONDS)
        assert out, error
        document: dict[str, Any] = json.loads(out)
        return self.processes[0].returncode, document

    def end(self) -> None:
        for each in self.processes:
            each.kill()
            each.wait()


@pytest.fixture
def wires(network: Network) -> list[Wire]:
    return [network.wire(network.host()) for _ in range(3)]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(32))
    return path


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    started: list[Job] = []
    yield started
    for each in started:
        each.end()
        for process in each.processes:
            process.communicate()


def doctor(wires: list[Wire], key: Path, jobs: list[Job], *words: str) -> Job:
    jobs.append(Job(wires, 1, 29600, "-m", "ofipy", "doctor", "--job", "--json", *words, key=key))
    return jobs[-1]


def bad(document: dict[str, Any]) -> dict[str, str]:
    """Places by rule, without what belongs to this machine."""
    ours = ("app.", "net.", "ladder.", "port.retransmit")
    return {
        each["id"]: each["place"]
        for each in document["checks"]
        if each["state"] in ("warning", "failed") and each["id"].startswith(ours)
    }


def host_names() -> list[str]:
    """Of the three hosts, which share the name of this machine."""
    own = os.uname().nodename
    return [own, f"{own}~2", f"{own}~3"]


def lose_what_leaves(network: Network, wire: Wire, port: str) -> None:
    """Lose 5 % of what leaves a host: netem there, or a filter at the switch where the kernel has no netem."""
    wire.send_frames()
    if wire.host.run("tc qdisc add dev eth0 root netem loss 5%").returncode == 0:
        return
    switch = network._switch
    for words in (
        "add table netdev lossy",
        f"add chain netdev lossy {port} {{ type filter hook ingress device {port} priority 0; }}",
        f"add rule netdev lossy {port} numgen random mod 100 < 5 drop",
    ):
        ran = switch.run(f"nft {words}")
        if ran.returncode != 0:
            pytest.skip(f"neither netem nor nft can lose packets here: {ran.stderr}")


def test_nothing_is_found(wires: list[Wire], key: Path, jobs: list[Job]) -> None:
    code, document = doctor(wires, key, jobs).result()
    assert bad(document) == {}
    assert code == 0
    assert len(document["hosts"]) == 3


@pytest.mark.timeout(500)
def test_a_lossy_host_and_a_stopped_process(
    network: Network, wires: list[Wire], key: Path, jobs: list[Job], tmp_path: Path
) -> None:
    script = tmp_path / "application.py"
    script.write_text(textwrap.dedent(APPLICATION))
    application = Job(wires[:2], PER_HOST, 29500, str(script), key=key)
    jobs.append(application)
    application.wait_until_met()
    stopped = application.processes[-1]
    stopped.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{stopped.pid}/stat").read_text().rpartition(") ")[2][0] != "T":
        time.sleep(0.001)
    lose_what_leaves(network, wires[2], "port3")
    # In a network of software 5 % is a warning.
    code, document = doctor(wires, key, jobs, "--strict").result()
    found, names = bad(document), host_names()
    assert code == 1
    assert document["hosts"][0]["name"] == names[2], document["hosts"]
    assert found["port.retransmit"] == f"{names[2]} TCP/IP", found
    assert found["app.no_progress"] == f"{names[1]} rank {2 * PER_HOST - 1}, pid {stopped.pid}", found
    named = [each for each in document["checks"] if each["place"] == found["app.no_progress"]]
    assert [each["remedy"] for each in named] == [f"kill -CONT {stopped.pid}"]


def test_a_member_of_the_measurement_is_stopped(wires: list[Wire], key: Path, jobs: list[Job]) -> None:
    job = doctor(wires, key, jobs)
    stopped = job.processes[1]
    with Reader() as reader:
        while not any(
            process.pid == stopped.pid
            and any(peer.messages_sent > 20 for each in process.endpoints for peer in each.peers)
            for process in reader.scan().processes
        ):
            assert stopped.poll() is None
    stopped.send_signal(signal.SIGSTOP)
    assert stopped_is_named(job.processes[0])
    # Nobody waits for who cannot hear a goodbye, and no error of the job's own is told.
    for other in (job.processes[0], job.processes[2]):
        other.wait(timeout=PROMPT)
    assert job.processes[2].communicate() == ("", "")
    code, document = job.result()
    assert code == 1
    found = bad(document)
    assert found["app.no_progress"] == f"{host_names()[1]} rank 1"


def stopped_is_named(first: subprocess.Popen[str]) -> bool:
    """Wait for the last line of rank 0."""
    assert first.stderr is not None
    return any("to be mended: no progress" in line for line in first.stderr)
