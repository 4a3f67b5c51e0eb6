# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy ping`` between hosts: packets that are lost, a cable that is pulled, and lanes that do not lead there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosts import Host, Network, Wire

from tests.host.servers import ServerProcess, serving

SECONDS = 60


class Client:
    """A ping on a host."""

    def __init__(self, host: Host, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            host.inside(sys.executable, "-u", "-P", "-m", "ofipy", "ping", *words),
            env=os.environ | {"OFIPY_LOG": "error"} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),
        )

    def wait_for(self, text: str) -> None:
        """Read until a line has this text."""
        assert self.process.stdout is not None
        assert any(text in line for line in iter(self.process.stdout.readline, "")), self.end()

    def end(self) -> tuple[int, str, str]:
        """Exit code and the rest of what it printed."""
        out, error = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, error

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def wires(network: Network) -> list[Wire]:
    return [network.wire(network.host()) for _ in range(2)]


@pytest.fixture
def server(wires: list[Wire]) -> Iterator[ServerProcess]:
    place = f"{wires[0].v4}:19229"
    with serving("ping", "--serve", place, prefix=wires[0].host.inside(), OFIPY_PROVIDER="tcp") as server:
        yield server


def ask(wires: list[Wire], *words: str, code: int = 0) -> dict[str, Any]:
    client = Client(wires[1].host, wires[0].v4, "--json", *words)
    try:
        ended, out, error = client.end()
    finally:
        client.kill()
    assert ended == code, error
    document: dict[str, Any] = json.loads(out)
    return document


@pytest.mark.usefixtures("server")
class TestBetweenHosts:
    def test_lost_packets_make_messages_late(self, wires: list[Wire]) -> None:
        (lane,) = ask(wires, "-ptcp", "-c200", "-i0", "-W30")["lanes"]
        clean = lane["min_usec"]
        wires[1].lose(0.2)
        (lane,) = ask(wires, "-ptcp", "-c200", "-i0", "-W30")["lanes"]
        assert (lane["answered"], lane["wrong"]) == (200, 0)
        assert lane["max_usec"] > 5000 > clean  # a repetition takes 5 ms at least
        assert wires[1].dropped() > 0

    def test_a_cable_is_pulled_and_put_back(self, wires: list[Wire]) -> None:
        client = Client(wires[1].host, wires[0].v4, "-i0.01", "-W0.3", OFIPY_PROVIDER="tcp")
        try:
            client.wait_for("time=")
            wires[0].cut()
            client.wait_for("lost: no answer within 0.3 s")
            wires[0].heal()
            client.wait_for("time=")
            client.process.send_signal(signal.SIGINT)
            code, out, error = client.end()
        finally:
            client.kill()
        assert code == 1
        assert "0 wrong" in error
        assert "round trips" in out

    def test_lanes_that_do_not_lead_there(self, wires: list[Wire], tmp_path: Path) -> None:
        document = ask(wires, "--all-ways", "-c2", "-i0", "-W30", "--connect", "2")
        assert [each["provider"] for each in document["lanes"]] == ["tcp"]
        assert "shm" in [each["provider"] for each in document["unused"]]
