# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor HOST`` between hosts: clean runs find nothing, and each fault of the network is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hosts import Network, Wire

from tests.host.servers import ServerProcess, serving

SECONDS = 100
RUNS = int(os.environ.get("OFIPY_RUNS", "3"))


@pytest.fixture
def wires(network: Network) -> list[Wire]:
    return [network.wire(network.host()) for _ in range(2)]


@pytest.fixture
def server(wires: list[Wire]) -> Iterator[ServerProcess]:
    place = f"{wires[0].v4}:19229"
    with serving("doctor", "--serve", place, prefix=wires[0].host.inside(), OFIPY_PROVIDER="tcp") as server:
        yield server


def doctor(wires: list[Wire], *words: str, code: int | None = None) -> dict[str, Any]:
    ran = subprocess.run(
        wires[1].host.inside(
            sys.executable,
            "-P",
            "-m",
            "ofipy",
            "doctor",
            wires[0].v4,
            "-ptcp",
            "--json",
            "--seconds",
            "0.3",
            *words,
        ),
        env=os.environ | {"OFIPY_LOG": "error"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tempfile.gettempdir(),
    )
    assert code is None or ran.returncode == code, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def found(document: dict[str, Any]) -> list[str]:
    """Rules on the way between both hosts that are not in order."""
    return [
        each["id"]
        for each in document["checks"]
        if each["state"] in ("warning", "failed") and each["place"].startswith(("to ", "from "))
    ]


def segments_of(wires: list[Wire]) -> dict[str, int]:
    """What TCP of the other host has counted."""
    words = ["counters", "--host", wires[0].v4, "--json"]
    ran = subprocess.run(
        wires[1].host.inside(sys.executable, "-P", "-m", "ofipy", *words),
        env=os.environ | {"OFIPY_LOG": "error", "OFIPY_PROVIDER": "tcp"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tempfile.gettempdir(),
        check=True,
    )
    return {row["name"]: row["value"] for row in json.loads(ran.stdout)["tcp"]}


@pytest.mark.usefixtures("server")
def test_counters_of_the_other_host(wires: list[Wire]) -> None:
    """Its server has accepted connections, and this host has made them."""
    before, after = segments_of(wires), segments_of(wires)
    assert after["PassiveOpens"] > before["PassiveOpens"] > 0
    assert after["InSegs"] > before["InSegs"]
    assert after["ActiveOpens"] == 0


@pytest.mark.usefixtures("server")
class TestFaults:
    @pytest.mark.timeout(100 + 20 * RUNS)
    def test_none(self, wires: list[Wire]) -> None:
        for _ in range(RUNS):
            document = doctor(wires, code=0)
            assert found(document) == []
            # The host itself is that of whoever runs this.
            ours = ("link.", "port.", "net.", "ladder.", "app.way")
            bad = [each for each in document["checks"] if each["state"] in ("warning", "failed")]
            assert not [each for each in bad if each["id"].startswith(ours)]
            assert document["measurements"]["raw"]["to"]["segments"] > 0

    def test_loss(self, wires: list[Wire]) -> None:
        wires[0].lose(0.03)
        document = doctor(wires)
        assert found(document) == ["port.retransmit"]
        (finding,) = (
            each for each in document["checks"] if each["id"] == "port.retransmit" and each["state"] != "ok"
        )
        assert finding["place"].startswith("to ")
        assert finding["measured"] > finding["threshold"]

    def test_interfaces_with_different_mtus(self, wires: list[Wire]) -> None:
        wires[0].host.ip("link set dev eth0 mtu 1400")
        assert found(doctor(wires, code=1)) == ["net.mtu"]

    def test_a_switch_that_drops_large_packets(self, wires: list[Wire], network: Network) -> None:
        for port in ("port1", "port2"):
            network._switch.ip(f"link set dev {port} mtu 1300")
        document = doctor(wires)
        assert found(document) == ["net.mtu"]
        (finding,) = (each for each in document["checks"] if each["id"] == "net.mtu")
        assert (finding["measured"], finding["threshold"]) == (1280, 1500)

    def test_a_firewall_against_datagrams_is_no_fault_of_the_mtu(self, wires: list[Wire]) -> None:
        wires[0].host.filter("-A INPUT -p udp -j DROP")
        assert found(doctor(wires, code=0)) == []

    def test_a_filtered_port(self, wires: list[Wire]) -> None:
        wires[0].host.filter("-A INPUT -p tcp --dport 19229 -j DROP")
        document = doctor(wires, code=3)
        assert found(document) == ["net.port"]
        (finding,) = (each for each in document["checks"] if each["id"] == "net.port")
        assert "packets to TCP port 19229 are dropped" in finding["finding"]
        assert "firewall" in finding["remedy"]

    def test_ports_of_measurements_are_filtered(self, wires: list[Wire]) -> None:
        wires[0].host.filter("-A INPUT -p tcp --dport 19229 -j ACCEPT")
        wires[0].host.filter("-A INPUT -p tcp --syn -j DROP")
        document = doctor(wires)
        assert set(found(document)) == {"ladder.raw"}
        assert document["measurements"]["provider"]["to"]["mb_per_sec"] > 0
