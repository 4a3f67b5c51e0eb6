# SPDX-License-Identifier: BSD-3-Clause
"""What operators' commands read of a real device of software, and endpoints with a traffic class over it.

The class itself is not seen here: rxe loops packets of one host back before a capture gets them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ofipy

pytestmark = pytest.mark.skipif(
    not Path("/sys/class/infiniband/rxe0").exists(), reason="needs tests/verbs/soft-roce"
)


def document(*words: str) -> Any:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", *words, "--json"],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return json.loads(ran.stdout)


def sent_packets() -> int:
    rows = document("counters", "rxe0/1")["devices"][0]["ports"][0]["counters"]
    found: int = next(row["value"] for row in rows if row["name"] == "sent_pkts")
    return found


def test_a_device_of_software() -> None:
    (device,) = document("devinfo", "rxe0")["devices"]
    (port,) = device["ports"]
    assert (port["state"], port["physical_state"], port["link_layer"]) == ("ACTIVE", "LinkUp", "Ethernet")
    assert (device["bus"], port["width"], port["speed"]) == (None, 1, "SDR")
    assert {gid["interface"] for gid in port["gids"]} == {each["name"] for each in device["interfaces"]}
    found = document("info", "-p", "verbs", "--filter", "link_layer=Ethernet")
    assert {info["domain"] for each in found["providers"] for info in each["infos"]} == {"rxe0"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_port_that_goes_down_is_seen() -> None:
    words = [sys.executable, "-P", "-m", "ofipy", "devinfo", "rxe0", "--watch", "0.1", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        try:
            (device,) = json.loads(watcher.stdout.readline())["devices"]
            assert device["ports"][0]["state"] == "ACTIVE"
            for way, state in (("down", "DOWN"), ("up", "ACTIVE")):
                subprocess.run(["ip", "link", "set", "roce0", way], check=True, timeout=60)
                while True:
                    change = json.loads(watcher.stdout.readline())
                    if (change["place"], change["name"], change["to"]) == ("rxe0/1", "state", state):
                        break
        finally:
            watcher.terminate()
    # The kernel takes a moment for the address.
    deadline = time.monotonic() + 60
    while not ofipy.getinfo(provider="verbs"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("ep_type", ["rdm", "dgram"])
def test_messages_with_a_traffic_class(ep_type: str) -> None:
    before = sent_packets()
    with (
        ofipy.open(provider="verbs", ep_type=ep_type, caps="msg", traffic_class=0xB8) as a,
        ofipy.open(provider="verbs", ep_type=ep_type, caps="msg") as b,
    ):
        receive = b.recv()
        a.send(b"marked", a.insert(b.address))
        assert receive.wait(timeout=60).data == b"marked"
    assert sent_packets() > before


def test_connections_with_a_traffic_class() -> None:
    with (
        ofipy.listen(provider="verbs", caps="msg") as listener,
        ofipy.open(provider="verbs", ep_type="msg", caps="msg", traffic_class=0xB8) as a,
    ):
        connecting = a.connect(listener.address)
        with listener.wait(timeout=60).accept(traffic_class=0x20) as b:
            connecting.wait(timeout=60)
            receive = b.recv()
            a.send(b"marked")
            assert receive.wait(timeout=60).data == b"marked"
