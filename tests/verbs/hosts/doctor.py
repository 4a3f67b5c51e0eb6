# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor`` between two hosts with devices: clean runs find nothing, and each fault of the network is named."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from other_host import PYTHON, OtherHost, run

from ofipy.doctor.rules import LEAST_SEGMENTS

RUNS = int(os.environ.get("OFIPY_RUNS", "2"))
"""Clean runs over each provider; 20 in the full profile."""
SECONDS = 300
"""Of one run, which takes 10 to 20 s on a machine that does nothing else."""
PORT = 19229
pytestmark = pytest.mark.timeout(2 * SECONDS)
FILTER = "INPUT -p udp --dport 4791 -j DROP"


@pytest.fixture(scope="module")
def server(there: OtherHost) -> Iterator[OtherHost]:
    with there.running(*PYTHON, "-m", "ofipy", "doctor", "--serve", stdin=subprocess.DEVNULL):
        there.wait_for_listener(PORT)
        yield there
        there.read("pkill", "-f", "doctor --serve")


def doctor(server: OtherHost, *words: str, **settings: str) -> dict[str, Any]:
    began = time.monotonic()
    ran = subprocess.run(
        [*PYTHON, "-m", "ofipy", "doctor", server.address, "--json", "--seconds", "0.3", *words],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    print(f"{time.monotonic() - began:.0f} s; {ran.stderr.strip()}", flush=True)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def bad(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Findings that are a warning or a failure."""
    found = [each for each in document["checks"] if each["state"] in ("warning", "failed")]
    for each in found:
        print(each["id"], each["place"], each["state"], each["finding"], flush=True)
    return found


def found(document: dict[str, Any]) -> list[str]:
    """Rules on the network that are not in order now; old counts are those of the test before."""
    steps = ("link", "reach", "raw", "provider", "congestion")
    now = [
        each
        for each in bad(document)
        if each["step"] in steps and not each["finding"].endswith("since the counters began")
    ]
    return list(dict.fromkeys(each["id"] for each in now))


def set_clock(server: OtherHost, ahead: float) -> None:
    """Set the other clock back by what was measured: a machine that is emulated has no time of its own."""
    line = f"import time; time.clock_settime(time.CLOCK_REALTIME, time.time() - {ahead})"
    server.read(*PYTHON, "-c", line)


@contextmanager
def fault(begin: Sequence[str], end: Sequence[str]) -> Iterator[None]:
    """Have a fault of the network meanwhile."""
    run(begin, seconds=20)
    try:
        yield
    finally:
        run(end, seconds=20)


def netem(text: str) -> tuple[list[str], list[str]]:
    device = "tc qdisc {} dev eth0 root"
    return [*device.format("add").split(), "netem", *text.split()], device.format("del").split()


@pytest.mark.timeout(SECONDS + 60 * RUNS)
@pytest.mark.parametrize("provider", ["verbs", "tcp"])
def test_nothing_is_found(server: OtherHost, provider: str) -> None:
    """Not even a warning, by any rule on either host, once both clocks agree."""
    document = doctor(server)
    for number in range(RUNS):
        set_clock(server, document["measurements"]["clock_seconds"])
        document = doctor(server, *(["-ptcp"] if provider == "tcp" else []))
        measured = document["measurements"]
        print(number, provider, measured["raw"], measured["provider"], flush=True)
        assert measured["way"] == provider
        assert measured["raw_over"] == ("queue pair" if provider == "verbs" else "socket")
        rates = [measured[rung][way]["mb_per_sec"] for rung in ("raw", "provider") for way in ("to", "from")]
        assert all(each and each > 0 for each in rates), measured
        assert bad(document) == []


def find_loss(server: OtherHost, provider: str, least: int) -> dict[str, Any]:
    """A run that names retransmissions, or in which the bare stream takes so many packets that it should have.

    A rule says nothing of a few that were lost. Where many are, a stream may break, and has no figure.
    """
    mtu = int(Path("/sys/class/net/eth0/mtu").read_text())
    seconds = 1
    while True:
        document = doctor(server, "-p", provider, "--seconds", str(seconds))
        moved = (document["measurements"]["raw"]["to"]["mb_per_sec"] or 0) * 1e6 * seconds
        print(f"{seconds} s moved some {moved / mtu:.0f} packets", flush=True)
        if moved >= least * mtu or "port.retransmit" in found(document):
            return document
        seconds *= 2


@pytest.mark.parametrize(("provider", "share"), [("tcp", 2), ("verbs", 3)])
def test_loss(server: OtherHost, provider: str, share: int) -> None:
    with fault(*netem(f"loss {share}%")):
        # Four times as many are lost as the rule asks for.
        document = find_loss(server, provider, 4 * LEAST_SEGMENTS * 100 // share)
    print([each["finding"] for each in document["checks"] if each["id"] == "port.retransmit"], flush=True)
    assert "port.retransmit" in found(document)


def test_another_mtu(server: OtherHost) -> None:
    mtu = Path("/sys/class/net/eth0/mtu").read_text().strip()
    with fault(["ip", "link", "set", "eth0", "mtu", "1500"], f"ip link set eth0 mtu {mtu}".split()):
        assert "net.mtu" in found(doctor(server, "-ptcp"))


def test_marks_of_congestion(server: OtherHost) -> None:
    switch = "sysctl -qw net.ipv4.tcp_ecn={}"
    before = Path("/proc/sys/net/ipv4/tcp_ecn").read_text().strip()
    with (
        fault(switch.format(1).split(), switch.format(before).split()),
        fault(*netem("loss 20% ecn")),
    ):
        assert "port.congestion" in found(doctor(server, "-ptcp"))


def test_the_port_of_roce_is_filtered(server: OtherHost) -> None:
    with fault(f"iptables-legacy -w -A {FILTER}".split(), f"iptables-legacy -w -D {FILTER}".split()):
        document = doctor(server)
        assert {"net.port", "app.way"} >= set(found(document)) >= {"net.port"}
    texts = [each for each in document["checks"] if each["id"] == "net.port" and each["state"] == "failed"]
    assert any("verbs" in each["finding"] and "4791" in each["remedy"] for each in texts)


@pytest.mark.parametrize("provider", ["verbs", "tcp"])
def test_another_key(server: OtherHost, tmp_path: Path, provider: str) -> None:
    key = tmp_path / "key"
    run([*PYTHON, "-m", "ofipy", "key", "new", str(key)], seconds=60)
    document = doctor(server, "-p", provider, OFIPY_AUTH_KEY_FILE=str(key))
    assert found(document) == ["net.port"]
    assert any("another key" in each["finding"] for each in document["checks"])
