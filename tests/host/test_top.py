# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy top``: rates between two moments, and how they are shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console

from ofipy.cli.commands import ofipy_command
from ofipy.cli.top import describe, fill_terminal, say, say_bytes, share_lines, show_top
from ofipy.host.tree import Tree
from ofipy.statistics import Process, Snapshot
from ofipy.top.rates import SORT_KEYS, Screen, find_rates
from ofipy.top.sample import PortCount, Sample, take_sample
from tests.host import trees
from tests.host.snapshots import Scans, endpoint, messages, peer, process, snapshot


def sample(at: float, *processes: Process, ports: tuple[PortCount, ...] = (), unreadable: int = 0) -> Sample:
    return Sample(at, snapshot(*processes, unreadable=unreadable), ports)


def rates(before: Sample, now: Sample, sort: str = "bytes") -> Screen:
    return find_rates(before, now, sort)


class TestRates:
    def test_of_a_process_and_its_endpoints(self) -> None:
        before = process(7, endpoint(sends=10, bytes_sent=100), endpoint(2, receives=5, reads=1))
        now = process(
            7,
            endpoint(sends=30, bytes_sent=500, pending=2, backlog=1),
            endpoint(2, receives=6, reads=2, writes=3, errors=4, unexpected_messages=5, announced_messages=6),
        )
        screen = rates(sample(0.0, before), sample(2.0, now, unreadable=3))
        (row,) = screen.processes
        assert (row.pid, row.program, row.rank, row.endpoints) == (7, "train", None, 2)
        assert (row.rates.sends, row.rates.receives, row.rates.remote) == (10, 0.5, 2)
        assert (row.rates.bytes_sent, row.rates.errors) == (200, 2)
        assert (row.pending, row.unexpected) == (3, 11)
        assert [each.rates.sends for each in screen.endpoints] == [10, 0]
        assert (screen.seconds, screen.unreadable) == (2, 3)

    def test_an_endpoint_that_was_closed_is_in_the_rates_of_its_process(self) -> None:
        before = process(7, endpoint(sends=10))
        screen = rates(sample(0.0, before), sample(1.0, process(7, endpoint(0, sends=12))))
        assert (screen.processes[0].rates.sends, screen.processes[0].endpoints) == (2, 0)
        assert screen.endpoints == ()

    def test_what_is_new_began_at_0(self) -> None:
        new = process(8, endpoint(sends=5, peers=(peer("a", 40),)))
        screen = rates(sample(0.0), sample(1.0, new))
        assert (screen.processes[0].rates.sends, screen.peers[0].bytes_sent) == (5, 40)

    def test_a_pid_that_is_used_again_is_new(self) -> None:
        again = Process(7, 9999, "other", "", -1, False, (endpoint(sends=4),))
        screen = rates(sample(0.0, process(7, endpoint(sends=3))), sample(1.0, again))
        assert screen.processes[0].rates.sends == 4

    def test_who_has_ended_is_not_shown(self) -> None:
        ended = process(7, endpoint(sends=10), ended=True)
        assert rates(sample(0.0), sample(1.0, ended)).processes == ()

    def test_the_protocol_of_an_endpoint(self) -> None:
        def sent(eager: int, announced: int) -> Process:
            carried = {
                ("sent", "eager"): messages(0, c3=eager),
                ("received", "announced"): messages(0, c20=announced),
            }
            return process(7, endpoint(messages=carried))

        def protocol(before: Process, now: Process) -> str | None:
            return rates(sample(0.0, before), sample(1.0, now)).endpoints[0].protocol

        assert protocol(sent(100, 0), sent(102, 3)) == "announced"
        assert protocol(sent(100, 0), sent(104, 3)) == "eager"
        assert protocol(sent(100, 5), sent(100, 5)) is None

    def test_peers(self) -> None:
        before = process(7, endpoint(peers=(peer("a", 100), peer("b", 10))))
        now = process(7, endpoint(peers=(peer("a", 110), peer("b", 50, errors=1))))
        screen = rates(sample(0.0, before), sample(1.0, now))
        assert [(each.address, each.bytes_sent, each.errors) for each in screen.peers] == [
            ("b", 40, 1),
            ("a", 10, 0),
        ]

    @pytest.mark.parametrize(("most", "shown"), [(None, ["b", "a"]), (1, ["b"]), (0, [])])
    def test_so_many_peers(self, most: int | None, shown: list[str]) -> None:
        before = process(7, endpoint(peers=(peer("a", 100), peer("b", 10))))
        now = process(7, endpoint(peers=(peer("a", 110), peer("b", 50))))
        screen = find_rates(sample(0.0, before), sample(1.0, now), "bytes", most)
        assert [each.address for each in screen.peers] == shown

    def test_ports(self, tmp_path: Path) -> None:
        root = trees.bnxt_re().write(tmp_path / "machine")
        before = take_sample(Scans(snapshot()), Tree(str(root)))
        folder = root / "sys/class/infiniband/bnxt_re0/ports/1/hw_counters"
        (folder / "rx_bytes").write_text("800\n")
        (folder / "to_retransmits").write_text("8\n")
        after = replace(take_sample(Scans(snapshot()), Tree(str(root))), time=before.time + 2)
        (row,) = rates(before, after).ports
        assert (row.device, row.port, row.state, row.rate) == ("bnxt_re0", 1, "ACTIVE", "100 Gb/sec (4X EDR)")
        assert (row.bytes_received, row.bytes_sent, row.retries, row.errors) == (250, 0, 1, 1)

    def test_a_port_that_counts_no_bytes(self, tmp_path: Path) -> None:
        tree = Tree(str(trees.rxe().write(tmp_path / "machine")))
        before = take_sample(Scans(snapshot()), tree)
        (row,) = rates(before, take_sample(Scans(snapshot()), tree)).ports
        assert (row.bytes_sent, row.bytes_received) == (None, None)

    @pytest.mark.parametrize(
        ("sort", "pids"),
        [
            ("bytes", [2, 3, 1]),
            ("messages", [1, 2, 3]),
            ("errors", [3, 1, 2]),
            ("pending", [2, 3, 1]),
            ("unexpected", [1, 3, 2]),
            ("name", [3, 1, 2]),
        ],
    )
    def test_order(self, sort: str, pids: list[int]) -> None:
        running = (
            process(1, endpoint(sends=9, unexpected_messages=1), program="m"),
            process(2, endpoint(sends=1, bytes_sent=500, pending=1), program="n"),
            process(3, endpoint(errors=2), program="a"),
        )
        assert sort in SORT_KEYS
        assert [row.pid for row in rates(sample(0.0), sample(1.0, *running), sort).processes] == pids


def test_the_command_knows_the_same_keys() -> None:
    (sort,) = [each for each in ofipy_command.commands["top"].params if each.name == "sort"]
    assert isinstance(sort.type, click.Choice)
    assert tuple(sort.type.choices) == SORT_KEYS


def busy(sends: int) -> Snapshot:
    there = (peer("host:7", 10 * sends),)
    return snapshot(
        process(7, endpoint(sends=sends, bytes_sent=10 * sends, peers=there), program="\x1b[2Jtrain")
    )


class TestShown:
    def show(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool) -> str:
        tree = Tree(str(trees.mlx5_infiniband().pack(tmp_path / "machine.tar.gz")))
        scans = Scans(busy(0), busy(5), busy(9))
        show_top(scans, tree, interval=0.001, number=2, sort="bytes", as_json=as_json)
        return capsys.readouterr().out

    def test_documents(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        documents: list[dict[str, Any]] = [
            json.loads(line) for line in self.show(tmp_path, capsys, as_json=True).splitlines()
        ]
        assert [each["schema"] for each in documents] == [1, 1]
        for document, sends in zip(documents, (5, 4), strict=True):
            (row,) = document["processes"]
            assert row["rates"]["sends"] * document["seconds"] == pytest.approx(sends)
            assert document["peers"][0]["address"] == "host:7"
            assert [port["device"] for port in document["ports"]] == ["mlx5_0", "mlx5_0"]

    def test_tables(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shown = self.show(tmp_path, capsys, as_json=False)
        assert shown.count("1 processes, 1 endpoints") == 2
        for text in ("processes", "endpoints", "peers", "ports", "host:7", "mlx5_0/1", "200 Gb/sec (4X HDR)"):
            assert text in shown
        assert "\x1b" not in shown
        assert "?[2Jtrain" in shown
        monkeypatch.setenv("COLUMNS", "60")
        narrow = self.show(tmp_path, capsys, as_json=False)
        assert max(map(len, narrow.splitlines())) <= 60

    @pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 300)])
    def test_a_screen_fits_the_terminal(self, width: int, height: int, tmp_path: Path) -> None:
        running = [
            process(pid, *(endpoint(at, peers=(peer("a", 1), peer("b", 1))) for at in (1, 2, 3)))
            for pid in range(20)
        ]
        tree = Tree(str(trees.mlx5_infiniband().pack(tmp_path / "machine.tar.gz")))
        ports = take_sample(Scans(snapshot()), tree).ports
        screen = rates(sample(0.0, ports=ports), sample(1.0, *running, ports=ports))
        out = io.StringIO()
        console = Console(file=out, width=width, height=height)
        console.print(fill_terminal(console, screen))
        lines = out.getvalue().splitlines()
        assert len(lines) <= height
        assert "…" not in out.getvalue()
        for text in ("processes", "endpoints", "peers", "ports", "sends/s", "received", "mlx5_0/1"):
            assert text in out.getvalue()
        assert ("remote/s" in out.getvalue()) == (width > 80)
        assert sum(share_lines(screen, 300)) == 20 + 60 + 120 + 2

    @pytest.mark.parametrize(
        ("rate", "text"),
        [(0, "0"), (999, "999"), (1234, "1.23 k"), (5.6e6, "5.6 M"), (7e9, "7 G"), (0.5, "0.5")],
    )
    def test_numbers(self, rate: float, text: str) -> None:
        assert say(rate) == text

    def test_bytes(self) -> None:
        assert [say_bytes(each) for each in (None, 12, 1500)] == ["-", "12 B/s", "1.5 kB/s"]

    def test_the_document_is_plain(self) -> None:
        json.dumps(describe(rates(sample(0.0), sample(1.0, process(1, endpoint())))))
