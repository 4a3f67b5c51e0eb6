# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy devinfo``, ``counters``, ``info --filter`` and ``strerror``, over recorded machines of eight drivers."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import ofipy
from ofipy._discovery.info import Explanation
from ofipy.cli.filters import keep_fitting, parse_filter
from ofipy.host.tree import Tree
from tests.host import trees


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every recorded machine."""
    root = tmp_path_factory.mktemp("recorded")
    for name, build in trees.ALL.items():
        build().write(root / name)
    return root


def run(*words: str, code: int = 0, **environment: str) -> tuple[str, str]:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", *words],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    return ran.stdout, ran.stderr


def devinfo(root: Path, *words: str) -> dict[str, Any]:
    """The one device of a machine."""
    document = json.loads(run("devinfo", *words, "--json", "--root", str(root))[0])
    assert document["schema"] == 1
    (device,) = document["devices"]
    found: dict[str, Any] = device
    return found


def counters(root: Path, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run("counters", *words, "--json", "--root", str(root))[0])
    assert document["schema"] == 1
    return document


def of_port(root: Path, *words: str) -> dict[str, dict[str, Any]]:
    """The counters of the first port of a machine's only device, by name."""
    rows = counters(root, *words)["devices"][0]["ports"][0]["counters"]
    assert all(set(row) == {"name", "value", "unit", "kind", "saturated", "delta", "source"} for row in rows)
    return {row["name"]: row for row in rows}


class TestDevinfo:
    def test_infiniband(self, recorded: Path) -> None:
        device = devinfo(recorded / "mlx5_infiniband")
        assert (device["name"], device["driver"], device["firmware"]) == ("mlx5_0", "mlx5_core", "20.35.1012")
        assert (device["node_guid"], device["adapter"]) == ("b859:9f03:0001:0203", "MT4123")
        bus = device["bus"]
        assert (bus["function"], bus["numa_node"], bus["processors"]) == ("0000:81:00.0", 1, "16-31")
        assert [(each["function"], each["width"], each["max_width"]) for each in bus["links"]] == [
            ("0000:81:00.0", 8, 16),
            ("0000:80:01.0", 16, 16),
        ]
        assert bus["gigabits"] == 126.0  # 16 GT/s, 8 lanes, 128 of 130 bits
        assert bus["temperatures"] == [{"label": "asic", "celsius": 61.5, "critical": 105.0}]
        up, down = device["ports"]
        assert (up["state"], up["physical_state"], up["link_layer"]) == ("ACTIVE", "LinkUp", "InfiniBand")
        assert (up["gigabits"], up["width"], up["speed"]) == (200.0, 4, "HDR")
        assert (up["lid"], up["sm_lid"], up["capabilities"]) == (42, 1, "0xa651e848")
        assert up["retries"]["packet_seq_err"] == 4
        assert (down["state"], down["physical_state"], down["speed"]) == ("DOWN", "Polling", "SDR")
        assert up["partition_keys"] == [{"index": 0, "key": "0xffff"}]

    def test_roce(self, recorded: Path) -> None:
        device = devinfo(recorded / "mlx5_roce")
        (port,) = device["ports"]
        assert [(each["index"], each["type"], each["interface"]) for each in port["gids"]] == [
            (0, "IB/RoCE v1", "ens1f0np0"),
            (3, "RoCE v2", "ens1f0np0"),
        ]
        (interface,) = device["interfaces"]
        assert (interface["mtu"], interface["megabits"], interface["numa_node"]) == (9000, 100000, 1)
        assert (interface["ecn_notification"], interface["ecn_reaction"]) == ([3], [])
        assert interface["priority_flow_control"] == [3]
        shown, _ = run("devinfo", "mlx5_10", "--root", str(recorded / "mlx5_roce"), COLUMNS="200")
        assert (
            "ECN notification on priorities 3, ECN reaction on priorities none, PFC on priorities 3" in shown
        )
        assert device["congestion_control"]["np_cnp_dscp"] == 48
        assert "rp_hai_rate            50\n" in shown

    @pytest.mark.parametrize(
        ("machine", "node_type", "firmware", "retries"),
        [
            ("mlx4", "CA", "2.42.5000", {}),
            ("irdma", "RNIC", "1.60", {"tcpRetransSegs": 21}),
            (
                "bnxt_re",
                "CA",
                "218.0.219.2",
                {"rnr_naks_rcvd": 0, "seq_err_naks_rcvd": 0, "to_retransmits": 6},
            ),
            ("efa", "unspecified", "0.0.0.0", {"retrans_pkts": 2}),
            ("hfi1", "CA", "1.27.0", {}),
        ],
    )
    def test_others(
        self, recorded: Path, machine: str, node_type: str, firmware: str, retries: dict[str, int]
    ) -> None:
        device = devinfo(recorded / machine)
        assert (device["node_type"], device["firmware"]) == (node_type, firmware)
        assert device["ports"][0]["state"] == "ACTIVE"
        assert device["ports"][0]["retries"] == retries

    def test_software(self, recorded: Path) -> None:
        device = devinfo(recorded / "rxe")
        assert (device["bus"], device["firmware"]) == (None, None)
        assert [each["name"] for each in device["interfaces"]] == ["eth0"]

    def test_for_people(self, recorded: Path) -> None:
        root = str(recorded / "mlx5_infiniband")
        table = run("devinfo", "--root", root)[0]
        for text in (
            "ACTIVE, LinkUp",
            "DOWN, Polling",
            "200 Gb/sec (4X HDR)",
            "126 Gb/s",
            "20.35.1012",
            "61.5",
        ):
            assert text in table
        lines = run("devinfo", "mlx5_0/1", "--root", root)[0]
        assert "16 GT/s x8, at most 16 GT/s x16" in lines
        assert "Polling" not in lines
        assert max(map(len, run("devinfo", "--root", root, COLUMNS="60")[0].splitlines())) <= 60

    def test_one_port(self, recorded: Path) -> None:
        device = devinfo(recorded / "mlx5_infiniband", "mlx5_0/2")
        assert [port["number"] for port in device["ports"]] == [2]

    def test_an_archive(self, tmp_path: Path, recorded: Path) -> None:
        file = trees.mlx5_roce().pack(tmp_path / "roce.tar.gz")
        assert devinfo(file) == devinfo(recorded / "mlx5_roce")

    @pytest.mark.parametrize(
        ("words", "code", "says"),
        [
            (["mlx5_7"], 3, "there is no device mlx5_7; there are: mlx5_0"),
            (["mlx5_0/3"], 3, "mlx5_0 has no port 3; it has: 1, 2"),
            (["mlx5_0/x"], 2, "a port is a number"),
        ],
    )
    def test_what_is_not_there(self, recorded: Path, words: list[str], code: int, says: str) -> None:
        assert says in run("devinfo", *words, "--root", str(recorded / "mlx5_infiniband"), code=code)[1]

    def test_no_device(self, tmp_path: Path) -> None:
        printed, said = run("devinfo", "--root", str(tmp_path), code=3)
        assert printed == ""
        assert "this machine has no RDMA device" in said
        assert json.loads(run("devinfo", "--json", "--root", str(tmp_path), code=3)[0])["devices"] == []

    def test_no_tree(self, tmp_path: Path) -> None:
        assert "No such file" in run("devinfo", "--root", str(tmp_path / "none"), code=1)[1]
        (tmp_path / "text").write_text("no archive")
        assert "no tar archive" in run("counters", "--root", str(tmp_path / "text"), code=1)[1]


class TestCounters:
    def test_words_of_four_bytes(self, recorded: Path) -> None:
        found = of_port(recorded / "mlx5_infiniband")
        assert (found["port_xmit_data"]["value"], found["port_xmit_data"]["unit"]) == (4000, "bytes")
        assert found["port_rcv_data"]["value"] == 2**42
        assert found["port_xmit_data"]["source"].endswith("ports/1/counters/port_xmit_data")
        assert "lifespan" not in found

    def test_the_highest_value_of_a_counter_that_stays(self, recorded: Path) -> None:
        found = of_port(recorded / "mlx5_infiniband")
        stuck = {name: row["value"] for name, row in found.items() if row["saturated"]}
        assert stuck == {"symbol_error": 65535, "link_downed": 255, "local_link_integrity_errors": 15}
        printed = run("counters", "mlx5_0/1", "--root", str(recorded / "mlx5_infiniband"))[0]
        assert "≥ 65535" in printed

    @pytest.mark.parametrize(
        ("machine", "wrong"),
        [
            (
                "mlx5_infiniband",
                {
                    "local_link_integrity_errors",
                    "link_downed",
                    "symbol_error",
                    "port_rcv_errors",
                    "packet_seq_err",
                },
            ),
            ("mlx5_roce", set()),  # queue pairs that were closed have flushed their work requests
            ("mlx4", set()),
            ("irdma", {"tcpRetransSegs"}),
            ("bnxt_re", {"to_retransmits", "recoverable_errors"}),
            ("efa", {"rx_drops", "retrans_pkts"}),
            ("hfi1", {"excessive_buffer_overrun_errors"}),
            ("rxe", {"completer_retry_err"}),
        ],
    )
    def test_errors(self, recorded: Path, machine: str, wrong: set[str]) -> None:
        assert set(of_port(recorded / machine, "--errors", "--nonzero")) == wrong

    @pytest.mark.parametrize(
        ("machine", "name", "kind"),
        [
            ("mlx5_infiniband", "port_xmit_wait", "congestion"),
            ("mlx5_roce", "np_cnp_sent", "congestion"),
            ("irdma", "cnpSent", "congestion"),
            ("hfi1", "RcvBECN", "congestion"),
            ("bnxt_re", "active_qps", "level"),
            ("bnxt_re", "rx_bytes", "traffic"),
            ("efa", "rdma_read_bytes", "traffic"),
            ("rxe", "sent_pkts", "traffic"),
            ("mlx5_roce", "req_cqe_flush_error", "other"),
        ],
    )
    def test_kinds(self, recorded: Path, machine: str, name: str, kind: str) -> None:
        row = of_port(recorded / machine)[name]
        assert row["kind"] == kind
        assert row["value"] > 0

    def test_no_performance_management(self, recorded: Path) -> None:
        assert of_port(recorded / "mlx4") == {}
        assert "mlx4_0/1 has no counters" in run("counters", "mlx4_0/1", "--root", str(recorded / "mlx4"))[1]

    def test_a_driver_without_the_standard_counters(self, recorded: Path) -> None:
        assert set(of_port(recorded / "bnxt_re")) == set(trees.BNXT_RE)

    def test_counters_of_a_device(self, recorded: Path) -> None:
        rows = {row["name"]: row for row in counters(recorded / "efa", "rdmap0s6")["devices"][0]["counters"]}
        assert rows["submitted_cmds"]["value"] == 40
        assert (rows["cmds_err"]["value"], rows["cmds_err"]["kind"]) == (1, "error")
        assert rows["aer_correctable_RxErr"]["value"] == 3
        assert "aer_correctable_TOTAL_ERR_COR" not in rows

    def test_flow_control(self, recorded: Path) -> None:
        (interface,) = counters(recorded / "mlx5_roce")["interfaces"]
        rows = {row["name"]: row for row in interface["counters"]}
        assert (rows["pfc_requests_prio3"]["value"], rows["pfc_indications_prio3"]["value"]) == (12, 7)
        assert rows["pfc_requests_prio0"]["value"] == 0
        for name in ("pfc_requests_prio3", "rx_prio3_pause", "rx_prio3_pause_duration", "rx_ecn_mark"):
            assert rows[name]["kind"] == "congestion", name
        assert (rows["rx_discards_phy"]["kind"], rows["rx_discards_phy"]["value"]) == ("error", 5)
        assert rows["rx_prio3_pause"]["source"] == "commands/ethtool_-S_ens1f0np0.out"
        # Neither what the kernel counts itself nor what a queue counts.
        assert not {"rx_packets", "rx0_packets", "ch0_events"} & rows.keys()
        assert rows["rx_dropped"]["source"].startswith("sys/class/net/")

    @pytest.mark.parametrize(
        ("output", "code"),
        [
            ("", 1),
            ("no document", 0),
            ("[]", 0),
            ('{"prio_pfc":[true],"requests":[1],"indications":null}', 0),
            ('{"prio_pfc":7,"requests":[1,2,3,4,5,6,7,"8"],"indications":[1,2,3,4,5,6,7,-8]}', 0),
        ],
        ids=["failed", "text", "list", "few", "strange"],
    )
    def test_what_dcb_does_not_say_is_absent(self, tmp_path: Path, output: str, code: int) -> None:
        machine = trees.mlx5_roce()
        machine.add_command("dcb -j -s pfc show dev ens1f0np0", output, code)
        root = machine.write(tmp_path / "machine")
        (interface,) = devinfo(root)["interfaces"]
        assert interface["priority_flow_control"] is None
        rows = counters(root)["interfaces"][0]["counters"]
        assert not [row for row in rows if row["name"].startswith("pfc_")]
        assert [row["value"] for row in rows if row["name"] == "rx_prio3_pause"] == [7]

    def test_interfaces_and_tcp(self, recorded: Path) -> None:
        document = counters(recorded / "rxe")
        assert [each["name"] for each in document["interfaces"]] == ["eth0"]  # not lo
        rows = {row["name"]: row for row in document["tcp"]}
        assert {name: row["value"] for name, row in rows.items()} == {
            "ActiveOpens": 5,
            "InSegs": 900,
            "RetransSegs": 4,
            "CurrEstab": 2,
            "TCPTimeouts": 6,
            "ListenDrops": 0,
            "InCEPkts": 11,
        }
        assert (rows["RetransSegs"]["kind"], rows["InCEPkts"]["kind"]) == ("error", "congestion")
        only = counters(recorded / "rxe", "lo")
        assert (only["devices"], [each["name"] for each in only["interfaces"]]) == ([], ["lo"])

    def test_no_device(self, tmp_path: Path) -> None:
        document = counters(tmp_path)
        assert (document["devices"], document["interfaces"], document["tcp"]) == ([], [], [])
        assert "no counter" in run("counters", "--root", str(tmp_path))[1]
        assert run("counters")[0]  # this host has TCP at least

    def test_what_is_not_there(self, recorded: Path) -> None:
        said = run("counters", "ib7", "--root", str(recorded / "rxe"), code=3)[1]
        assert "there is no device ib7; there are: rxe0, eth0, lo" in said

    def test_changes_while_it_watches(self, tmp_path: Path) -> None:
        """The second document is read after the file has changed, because the first one has been printed by then."""
        root = trees.rxe().write(tmp_path / "rxe")
        folder = root / "sys/devices/virtual/infiniband/rxe0/ports/1/hw_counters"
        words = ["counters", "rxe0/1", "--watch", "0.01", "-n", "1000000", "--json", "--root", str(root)]
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "ofipy", *words], stdout=subprocess.PIPE, text=True
        ) as watcher:
            assert watcher.stdout is not None
            first = json.loads(watcher.stdout.readline())
            (folder / "sent_pkts").write_text("1250\n")
            (folder / "rcvd_pkts").unlink()
            seen = self.read_until_it_changes(watcher)
            watcher.terminate()
        assert (first["seconds"], self.row(first, "sent_pkts")["delta"]) == (None, None)
        assert self.row(seen, "sent_pkts")["delta"] == 250
        assert seen["seconds"] > 0
        assert watcher.returncode != 0

    def read_until_it_changes(self, watcher: subprocess.Popen[str]) -> dict[str, Any]:
        assert watcher.stdout is not None
        for line in watcher.stdout:
            document: dict[str, Any] = json.loads(line)
            if any(row["delta"] for row in document["devices"][0]["ports"][0]["counters"]):
                return document
        raise AssertionError("it ended before anything had changed")

    def row(self, document: dict[str, Any], name: str) -> dict[str, Any]:
        rows = document["devices"][0]["ports"][0]["counters"]
        found: dict[str, Any] = next(row for row in rows if row["name"] == name)
        return found

    def test_nothing_changes_in_a_recording(self, recorded: Path) -> None:
        words = ["counters", "rxe0", "--watch", "0.01", "-n", "2", "--root", str(recorded / "rxe")]
        printed, said = run(*words)
        assert printed.count("sent_pkts") == 1
        assert "nothing has changed in" in said

    def test_usage(self) -> None:
        assert "--watch" in run("counters", "-n", "2", code=2)[1]


class TestFilters:
    def shown(self, root: Path, *filters: str) -> list[str]:
        """The domains that are left of a provider's three."""
        info = ofipy.getinfo(provider="shm")[0]
        domains = ("mlx5_0:1", "mlx5_0:2-ipv6", "mlx5_9")
        infos = tuple(dataclasses.replace(info, domain=domain) for domain in domains)
        before = Explanation("verbs", "", "1.0", infos, None)
        (after,) = keep_fitting([before], [parse_filter(each) for each in filters], Tree(str(root)))
        assert (after.reason is None) == bool(after.infos)
        return [each.domain for each in after.infos]

    def test_by_device(self, recorded: Path) -> None:
        root = recorded / "mlx5_infiniband"
        both = ["mlx5_0:1", "mlx5_0:2-ipv6"]
        assert self.shown(root, "numa_node=1") == both
        assert self.shown(root, "numa_node=0") == []
        assert self.shown(root, "link_layer=infiniband") == both
        assert self.shown(root, "link_layer=InfiniBand", "domain=mlx5_0:1") == ["mlx5_0:1"]
        assert self.shown(root, "domain=mlx5_9") == ["mlx5_9"]

    @pytest.mark.parametrize("text", ["numa_node", "numa_node=near", "colour=red", "=1"])
    def test_what_is_no_filter(self, text: str) -> None:
        with pytest.raises(click.BadParameter):
            parse_filter(text)
        run("info", "--filter", text, code=2)

    def test_interfaces(self) -> None:
        shown = json.loads(run("info", "-p", "tcp", "--filter", "domain=lo", "--json")[0])
        assert {info["domain"] for each in shown["providers"] for info in each["infos"]} == {"lo"}
        assert "no provider is available that fits" in run("info", "--filter", "domain=none", code=3)[1]


class TestStrerror:
    @pytest.mark.parametrize("asked", [str(errno.EAGAIN), str(-errno.EAGAIN), "EAGAIN", "fi_eagain", "Again"])
    def test_one_error_by_all_its_names(self, asked: str) -> None:
        (found,) = json.loads(run("strerror", asked, "--json")[0])["errors"]
        assert (found["code"], found["names"], found["exception"]) == (errno.EAGAIN, ["EAGAIN"], "Again")

    @pytest.mark.parametrize("asked", ["265", "OFP_ETRUNC", "FI_ETRUNC", "ETRUNC"])
    def test_codes_without_an_errno(self, asked: str) -> None:
        printed = run("strerror", asked)[0]
        assert printed.startswith("265 OFP_ETRUNC: ")
        assert "ofipy.Truncated: The message was longer" in printed

    def test_a_name_of_two(self) -> None:
        found = json.loads(run("strerror", "ENOKEY", "--json")[0])["errors"]
        assert [each["code"] for each in found] == [266, errno.ENOKEY]
        assert len(json.loads(run("strerror", "PeerLost", "--json")[0])["errors"]) > 2

    @pytest.mark.parametrize("asked", ["nonsense", "99999", "FI_NONSENSE", "OFP_EAGAIN", "-", "4294967307"])
    def test_none(self, asked: str) -> None:
        assert "there is no error" in run("strerror", asked, code=2)[1]
