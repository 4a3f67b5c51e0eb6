# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --job`` beside a job of many processes on two hosts: one host loses packets, a process is stopped.

Both are named, whichever launcher starts the doctor.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from other_host import PYTHON, OtherHost, started_by

from ofipy.statistics import Reader

PER_HOST = int(os.environ.get("TEST_RANKS_PER_HOST", "8"))
SECONDS = 600
pytestmark = pytest.mark.timeout(2 * SECONDS)

APPLICATION = """
import time, ofipy
job = ofipy.job()
with ofipy.open() as ep:
    peers = job.peers(ep)
    receive = ep.trecv(tag=1)
    while True:
        for rank, peer in enumerate(peers):
            if rank != job.rank:
                ep.tsend(b"work", peer, tag=1)
        while receive.done:
            receive.wait()
            receive = ep.trecv(tag=1)
        time.sleep(1)
"""


@pytest.fixture(scope="module")
def patience() -> Iterator[None]:
    """Sixteen interpreters start on two emulated processors, and the doctor's beside them."""
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("OFIPY_JOB_TIMEOUT", str(SECONDS))
        yield


@pytest.fixture(scope="module")
def application(patience: None, there: OtherHost, folder: Path) -> Iterator[list[int]]:
    """The job: pids of its processes here, which have heard of all others."""
    script = folder / "application.py"
    script.write_text(APPLICATION)
    hosts = f"here:{PER_HOST},there:{PER_HOST}"
    command = [*PYTHON, "-m", "ofipy", "run", "--hosts", hosts, "--ssh", there.ssh, *PYTHON, str(script)]
    with subprocess.Popen(command) as launcher:
        try:
            yield wait_until_met(launcher)
        finally:
            for pid in stopped():
                os.kill(pid, signal.SIGCONT)
            launcher.send_signal(signal.SIGTERM)


def wait_until_met(launcher: subprocess.Popen[bytes]) -> list[int]:
    until = time.monotonic() + SECONDS
    with Reader() as reader:
        while True:
            met = [
                process.pid
                for process in reader.scan().processes
                for endpoint in process.endpoints
                if sum(peer.messages_received > 0 for peer in endpoint.peers) == 2 * PER_HOST - 1
            ]
            if len(met) == PER_HOST:
                return met
            assert launcher.poll() is None
            assert time.monotonic() < until, met
            time.sleep(0.5)  # the processes need the core


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def stopped() -> list[int]:
    with Reader() as reader:
        return [each.pid for each in reader.scan().processes if not each.ended and state(each.pid) == "T"]


@pytest.fixture(scope="module")
def faults(there: OtherHost, application: list[int]) -> Iterator[int]:
    """The process here that is stopped; the host there loses packets."""
    victim = application[PER_HOST // 2]
    os.kill(victim, signal.SIGSTOP)
    while state(victim) != "T":
        time.sleep(0.01)
    there.read("tc", "qdisc", "add", "dev", "eth0", "root", "netem", "loss", "5%")
    yield victim
    there.read("tc", "qdisc", "del", "dev", "eth0", "root")


@pytest.mark.parametrize("launcher", ["ofipy run", "mpiexec"])
def test_both_are_named(launcher: str, there: OtherHost, faults: int) -> None:
    began = time.monotonic()
    words = [*PYTHON, "-m", "ofipy", "doctor", "--job", "--json"]
    ran = subprocess.run(
        [*started_by(launcher, there.ssh), *words],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    print(f"{launcher}: {time.monotonic() - began:.0f} s; {ran.stderr.strip()}", flush=True)
    document = json.loads("\n".join(line.removeprefix("[0] ") for line in ran.stdout.splitlines()))
    found = [each for each in document["checks"] if each["state"] in ("warning", "failed")]
    for each in found:
        print(each["id"], each["place"], each["state"], each["finding"], flush=True)
    # A process of the measurement may be late as well, since packets are lost: it is named by its rank alone.
    stopped_ones = [place for place in names(found, "app.no_progress") if ", pid " in place]
    assert stopped_ones == [f"here rank {rank_of(faults)}, pid {faults}"]
    # A port also retries what arrived, if the acknowledgement was lost: both ends of this link may have a finding.
    assert any(place.startswith("there ") for place in names(found, "port.retransmit"))


def names(found: list[dict[str, Any]], rule: str) -> list[str]:
    return [each["place"] for each in found if each["id"] == rule]


def rank_of(pid: int) -> int:
    with Reader() as reader:
        return next(each.rank for each in reader.scan().processes if each.pid == pid)
