# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of real kernels, replayed with ``--root``.

``rxe.tar.xz`` is what ``ofipy doctor --record`` wrote in the guest of ``tests.guest`` (Linux 6.12 of Debian), where
``tests/verbs/soft-roce`` had made a device, after a ping-pong over it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lzma", reason="could not import 'lzma'")

from ofipy.exporter.device_rows import add_devices
from ofipy.exporter.family import Rows
from ofipy.host.counter import read_port_counters
from ofipy.host.device import read_device, read_devices
from ofipy.host.meaning import Kind
from ofipy.host.tree import Tree
from tests.host import trees

RXE = Path(__file__).parent / "recordings/rxe.tar.xz"
PORT = "sys/class/infiniband/rxe0/ports/1"
# The interface's hardware address, made to an EUI-64.
GUID = "e08b:acff:fe94:62e8"


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(str(RXE))


def document(*words: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", *words, "--json", "--root", str(RXE)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_devinfo() -> None:
    (device,) = document("devinfo")["devices"]
    assert (device["name"], device["node_type"], device["description"]) == ("rxe0", "CA", "rxe")
    assert device["node_guid"] == device["system_image_guid"] == GUID
    # Software has no driver, no firmware and no bus: the kernel's file fw_ver is empty.
    assert [device[name] for name in ("driver", "firmware", "board", "bus")] == [None] * 4
    (interface,) = device["interfaces"]
    assert (interface["name"], interface["mtu"], interface["megabits"]) == ("roce0", 4200, None)
    (port,) = device["ports"]
    assert (port["state"], port["physical_state"], port["link_layer"]) == ("ACTIVE", "LinkUp", "Ethernet")
    assert (port["rate"], port["width"], port["speed"]) == ("2.5 Gb/sec (1X SDR)", 1, "SDR")
    # 1,022 slots of the port's 1,024 have no address.
    assert [(gid["index"], gid["gid"], gid["type"], gid["interface"]) for gid in port["gids"]] == [
        (0, f"fe80:0000:0000:0000:{GUID}", "RoCE v2", "roce0"),
        (1, "0000:0000:0000:0000:0000:ffff:cb00:7101", "RoCE v2", "roce0"),
    ]
    assert port["partition_keys"] == [{"index": 0, "key": "0xffff"}]
    assert port["retries"] == {"completer_retry_err": 0, "rcvd_rnr_err": 0, "rcvd_seq_err": 0}


def test_counters() -> None:
    found = document("counters")
    (device,) = found["devices"]
    values = {row["name"]: row["value"] for row in device["ports"][0]["counters"]}
    moved = {"ack_deferred": 4192, "rcvd_pkts": 5091, "sent_pkts": 5091, "rdma_recvs": 677, "rdma_sends": 677}
    assert {name: value for name, value in values.items() if value} == moved
    assert {each["name"] for each in found["interfaces"]} >= {"roce0"}
    assert "lo" not in {each["name"] for each in found["interfaces"]}
    assert {row["name"] for row in found["tcp"]} >= {"OutSegs", "RetransSegs", "TCPTimeouts", "InCEPkts"}


def test_the_kernel_s_counters_are_those_of_the_table(tree: Tree) -> None:
    """So the tree that is written by this suite is the kernel's."""
    counters = read_port_counters(tree, PORT)
    assert {each.name for each in counters} == set(trees.RXE)
    kinds = {each.name: each.kind for each in counters}
    assert kinds["sent_pkts"] is Kind.TRAFFIC
    assert kinds["retry_exceeded_err"] is Kind.ERROR


def test_the_earlier_moment(tree: Tree) -> None:
    """``doctor --record`` looks twice, and nothing was moved between."""
    before = tree.below("before")
    assert [each.name for each in read_devices(before)] == ["rxe0"]
    assert [each.value for each in read_port_counters(before, PORT)] == [
        each.value for each in read_port_counters(tree, PORT)
    ]


def test_metrics(tree: Tree) -> None:
    rows = Rows()
    add_devices(rows, tree)
    found = {(family.name, *labels): value for family, each in rows.of.items() for labels, value in each}
    assert found["ofipy_rdma_state_id", "rxe0", "1"] == 4
    assert found["ofipy_rdma_rate_bytes_per_second", "rxe0", "1"] == 312_500_000
    assert found["ofipy_rdma_driver_events_total", "rxe0", "1", "sent_pkts"] == 5091
    assert found["ofipy_rdma_port_retries_total", "rxe0", "1"] == 0


def test_doctor() -> None:
    """A device of software has no rules on rates and slots; nothing is wrong with it."""
    checks = document("doctor")["checks"]
    of_port = {each["id"]: each["state"] for each in checks if each["place"] == "rxe0/1"}
    assert of_port["link.state"] == "ok"
    assert of_port["port.retransmit"] == "ok"
    assert not [each for each in checks if each["id"].startswith("pcie.") and each["state"] == "failed"]


def test_no_value_of_this_host(tree: Tree) -> None:
    assert read_device(tree, "mlx5_0").ports == ()
    assert tree.line("proc/sys/kernel/hostname") == "(none)"
