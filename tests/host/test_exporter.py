# SPDX-License-Identifier: BSD-3-Clause
"""What the exporter tells, of processes that nobody runs and of recorded machines; no prometheus-client is needed."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest

from ofipy.cli.exporter import split_place
from ofipy.exporter.collector import Collector, shed
from ofipy.exporter.device_families import DEVICE_FAMILIES
from ofipy.exporter.device_rows import add_devices
from ofipy.exporter.family import Distribution, Family, Rows
from ofipy.exporter.peers import BusiestPeers
from ofipy.exporter.per_process import PER_PROCESS_FAMILIES
from ofipy.exporter.process_families import COUNTERS, LEVELS, PROCESS_FAMILIES
from ofipy.exporter.state import StateError
from ofipy.exporter.totals import Programs
from ofipy.host.tree import Tree
from ofipy.statistics import Process, Snapshot
from tests.host import trees
from tests.host.snapshots import FIELDS, Scans, endpoint, messages, peer, process, snapshot

ROOT = Path(__file__).resolve().parents[2]
Told = dict[tuple[str, ...], float | Distribution]


def told(rows: Rows) -> Told:
    """Values by the name of the metric and the values of its labels; none is told twice."""
    found: Told = {}
    for family, each in rows.of.items():
        for labels, value in each:
            assert len(labels) == len(family.labels)
            key = (family.name, *labels)
            assert key not in found
            found[key] = value
    return found


@pytest.fixture
def empty(tmp_path: Path) -> Tree:
    """A machine without anything."""
    return Tree(str(tmp_path))


def collector(tree: Tree, *snapshots: Snapshot, peers: int = 20) -> Collector:
    return Collector(Scans(*snapshots), tree, version="1", peers=peers)


class TestSums:
    def test_every_field_of_statistics_has_a_metric(self) -> None:
        assert sorted([*COUNTERS, *LEVELS]) == sorted(FIELDS)

    def test_what_a_page_does_not_have_is_absent(self, empty: Tree) -> None:
        whole = endpoint()
        kept = {
            name: value for name, value in whole.counters.items() if name not in ("packed", "packet_buffers")
        }
        found = told(collector(empty, snapshot(process(1, replace(whole, counters=kept)))).collect_rows())
        assert {"ofipy_packed_operations_total", "ofipy_packet_buffers"} & {
            name for name, *_ in found
        } == set()
        assert found["ofipy_sent_bytes_total", "train", "tcp"] == 0
        assert found["ofipy_peers", "train", "tcp"] == 0

    def test_processes_of_a_program_are_summed(self, empty: Tree) -> None:
        found = told(
            collector(
                empty,
                snapshot(
                    process(1, endpoint(sends=3, bytes_sent=30), endpoint(2, sends=4)),
                    process(2, endpoint(sends=5, pending=2), endpoint(2, provider="shm", sends=6)),
                    process(3, endpoint(sends=7), program="serve"),
                    unreadable=9,
                ),
            ).collect_rows()
        )
        assert found["ofipy_operations_total", "train", "tcp", "send"] == 12
        assert found["ofipy_operations_total", "train", "shm", "send"] == 6
        assert found["ofipy_operations_total", "serve", "tcp", "send"] == 7
        assert found["ofipy_sent_bytes_total", "train", "tcp"] == 30
        assert found["ofipy_pending_operations", "train", "tcp"] == 2
        assert found["ofipy_endpoints", "train", "tcp"] == 3
        assert (found["ofipy_processes",], found["ofipy_unreadable_processes",]) == (3, 9)

    def sends(self, collector: Collector) -> float | Distribution:
        return told(collector.collect_rows())["ofipy_operations_total", "train", "tcp", "send"]

    def test_ended_processes_stay_in_the_sums(self, empty: Tree) -> None:
        first = process(1, endpoint(sends=10, pending=3))
        exporter = collector(
            empty,
            snapshot(first),
            snapshot(process(1, endpoint(sends=12, pending=3), ended=True), process(2, endpoint(sends=1))),
            snapshot(process(2, endpoint(sends=1))),
            snapshot(),
        )
        assert [self.sends(exporter) for _ in range(4)] == [10, 13, 13, 13]
        assert ("ofipy_pending_operations", "train", "tcp") not in told(exporter.collect_rows())

    def test_a_process_that_was_seen_between_scrapes_only(self, empty: Tree) -> None:
        exporter = collector(
            empty,
            snapshot(process(1, endpoint(sends=8))),
            snapshot(process(1, endpoint(sends=9), ended=True)),
            snapshot(),
        )
        exporter.scan()
        exporter.scan()
        assert self.sends(exporter) == 9

    def test_a_pid_that_is_used_again(self, empty: Tree) -> None:
        again = process(1, endpoint(sends=2))
        exporter = collector(
            empty,
            snapshot(process(1, endpoint(sends=10))),
            snapshot(type(again)(1, 7777, "train", "", -1, False, again.endpoints)),
        )
        assert [self.sends(exporter) for _ in range(2)] == [10, 12]

    def test_an_endpoint_that_is_closed_counts_once(self, empty: Tree) -> None:
        """Its counts move to the sum of closed ones; a scan may see both, or neither."""
        opened, closed = endpoint(sends=10), endpoint(0, sends=10)
        exporter = collector(
            empty,
            snapshot(process(1, opened)),
            snapshot(process(1)),
            snapshot(process(1, closed)),
            snapshot(process(1, closed, endpoint(2, sends=1))),
        )
        assert [self.sends(exporter) for _ in range(4)] == [10, 10, 10, 11]
        both = collector(
            empty,
            snapshot(process(1, opened)),
            snapshot(process(1, opened, closed)),
            snapshot(process(1, closed, endpoint(2, sends=15))),
        )
        assert [self.sends(both) for _ in range(3)] == [10, 20, 25]
        assert told(both.collect_rows())["ofipy_endpoints", "train", "tcp"] == 1

    def test_programs_beyond_fifty_are_one(self, empty: Tree) -> None:
        running = [process(pid, endpoint(sends=1), program=f"p{pid}") for pid in range(60)]
        found = told(collector(empty, snapshot(*running)).collect_rows())
        assert found["ofipy_operations_total", "other", "tcp", "send"] == 10
        assert found["ofipy_operations_total", "p49", "tcp", "send"] == 1

    def test_a_name_that_no_text_has(self, empty: Tree) -> None:
        odd = process(1, endpoint(), program="a\x1b[2J\udcff\n" + "x" * 200)
        found = told(collector(empty, snapshot(odd)).collect_rows())
        (name,) = [labels[0] for metric, *labels in found if metric == "ofipy_endpoints"]
        assert name == "a?[2J??" + "x" * 93

    def test_endpoints_that_are_stalled(self, empty: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ofipy.exporter.totals.time.monotonic", lambda: 100.0)
        running = process(
            1,
            endpoint(1, last_progress=98.0, unexpected_messages=1),
            endpoint(2, last_progress=98.0, posted_receives=1),  # waits, and nothing waits for it
            endpoint(3, last_progress=98.0, pending=1),  # it may sleep until its peer is ready
            endpoint(4, last_progress=99.5, backlog=1),
            endpoint(5, opened=99.5, backlog=1),
        )
        found = told(collector(empty, snapshot(running)).collect_rows())
        assert found["ofipy_stalled_endpoints", "train", "tcp"] == 1


class TestMessages:
    def test_by_protocol_and_by_size(self, empty: Tree) -> None:
        sent = {
            ("sent", "eager"): messages(1000, c0=2, c5=3, c6=4),
            ("sent", "announced"): messages(5 << 20, c20=5),
            ("received", "eager"): messages(1, c39=1),
        }
        found = told(collector(empty, snapshot(process(1, endpoint(messages=sent)))).collect_rows())
        assert found["ofipy_messages_total", "train", "tcp", "sent", "eager"] == 9
        assert found["ofipy_message_bytes_total", "train", "tcp", "sent", "announced"] == 5 << 20
        sizes = found["ofipy_message_size_bytes", "train", "tcp", "sent"]
        assert isinstance(sizes, Distribution)
        assert sizes.sum == 1000 + (5 << 20)
        by_bound = dict(sizes.buckets)
        assert [by_bound[bound] for bound in (63, 511, (1 << 18) - 1, (1 << 21) - 1, math.inf)] == [
            5,
            9,
            9,
            14,
            14,
        ]
        received = found["ofipy_message_size_bytes", "train", "tcp", "received"]
        assert isinstance(received, Distribution)
        assert [count for _, count in received.buckets] == [0] * 9 + [1]


class TestPeers:
    def bytes_sent(self, peers: BusiestPeers) -> dict[str, int]:
        return {address: traffic[2] for (_, _, address, _), traffic in peers.series.items()}

    def update(self, peers: BusiestPeers, *moved: int, number: int = 1) -> dict[str, int]:
        """One scan, in which peers a, b, c… have moved so much; 0: that one is not there."""
        there = tuple(peer(chr(97 + at), each) for at, each in enumerate(moved) if each)
        peers.update(snapshot(process(1, endpoint(number, peers=there))))
        return self.bytes_sent(peers)

    def test_the_busiest_and_the_rest(self) -> None:
        peers = BusiestPeers(2, Programs(50))
        assert self.update(peers, 10, 300, 20, 200) == {"b": 300, "d": 200, "other": 30}

    def test_no_sum_falls_when_a_busier_one_comes(self) -> None:
        peers = BusiestPeers(2, Programs(50))
        assert self.update(peers, 100, 50, 10) == {"a": 100, "b": 50, "other": 10}
        assert self.update(peers, 100, 50, 100) == {"a": 100, "b": 50, "other": 100}  # not twice as much
        assert self.update(peers, 100, 50, 110) == {"a": 100, "c": 10, "other": 100}
        assert self.update(peers, 100, 60, 110) == {"a": 100, "c": 10, "other": 110}

    def test_one_that_is_gone_gives_way_first(self) -> None:
        peers = BusiestPeers(2, Programs(50))
        self.update(peers, 1000, 50)
        assert self.update(peers, 0, 50) == {"a": 1000, "b": 50}
        assert self.update(peers, 0, 50, 10) == {"b": 50, "c": 10}

    def test_what_the_page_itself_has_summed(self) -> None:
        peers = BusiestPeers(2, Programs(50))
        peers.update(snapshot(process(1, endpoint(peers=(peer("other", 900), peer("a", 10))))))
        assert self.bytes_sent(peers) == {"other": 900, "a": 10}

    def test_one_that_is_removed_counts_once(self) -> None:
        """The page adds what it had counted to the sum of the others, and so does a closed endpoint."""
        peers = BusiestPeers(5, Programs(50))
        self.update(peers, 100, 50)
        peers.update(snapshot(process(1, endpoint(peers=(peer("a", 110), peer("other", 55, way=""))))))
        assert self.bytes_sent(peers) == {"a": 110, "b": 50, "other": 5}
        peers.update(snapshot(process(1, endpoint(0, peers=(peer("other", 170, way=""),)))))
        assert self.bytes_sent(peers) == {"a": 110, "b": 50, "other": 10}

    def test_none(self) -> None:
        peers = BusiestPeers(0, Programs(50))
        assert self.update(peers, 10, 20) == {"other": 30}

    def test_two_processes_with_the_same_peer(self, empty: Tree) -> None:
        both = [process(pid, endpoint(peers=(peer("a", 30, errors=1),))) for pid in (1, 2)]
        found = told(collector(empty, snapshot(*both)).collect_rows())
        assert found["ofipy_peer_bytes_total", "train", "tcp", "a", "tcp", "sent"] == 60
        assert found["ofipy_peer_messages_total", "train", "tcp", "a", "tcp", "sent"] == 6
        assert found["ofipy_peer_errors_total", "train", "tcp", "a", "tcp"] == 2


class TestEachProcess:
    def told(self, tree: Tree, *snapshots: Snapshot) -> list[Told]:
        exporter = Collector(Scans(*snapshots), tree, version="1", peers=0, per_process=True)
        return [told(exporter.collect_rows()) for _ in snapshots]

    def test_every_running_process(self, empty: Tree) -> None:
        (found,) = self.told(
            empty,
            snapshot(
                process(
                    1, endpoint(sends=5, bytes_sent=50, pending=2, backlog=1), endpoint(2, "shm", sends=1)
                ),
                replace(process(2, endpoint(receives=7, errors=1, unexpected_messages=3)), rank=4),
                process(3, endpoint(sends=9), ended=True),
            ),
        )
        assert found["ofipy_process_messages_total", "train", "1", "", "sent"] == 6
        assert found["ofipy_process_bytes_total", "train", "1", "", "sent"] == 50
        assert found["ofipy_process_endpoints", "train", "1", ""] == 2
        assert found["ofipy_process_pending_operations", "train", "1", ""] == 3
        assert found["ofipy_process_messages_total", "train", "2", "4", "received"] == 7
        assert found["ofipy_process_operation_errors_total", "train", "2", "4"] == 1
        assert found["ofipy_process_unexpected_messages", "train", "2", "4"] == 3
        assert not any("3" in key for key in found if key[0].startswith("ofipy_process_"))
        # The sums of the program have the process that has ended, too.
        assert found["ofipy_operations_total", "train", "tcp", "send"] == 14

    def test_no_series_falls_while_an_endpoint_closes(self, empty: Tree) -> None:
        key = ("ofipy_process_messages_total", "train", "1", "", "sent")
        values = [
            found[key]
            for found in self.told(
                empty,
                snapshot(process(1, endpoint(sends=5))),
                snapshot(process(1)),  # seen half moved
                snapshot(process(1, endpoint(0, sends=6))),
            )
        ]
        assert values == [5, 5, 6]

    def test_they_are_shed_behind_peers(self, empty: Tree) -> None:
        many = [process(pid, endpoint(peers=(peer("a", 10),))) for pid in range(100)]
        exporter = Collector(
            Scans(snapshot(*many)), empty, version="1", peers=5, per_process=True, most_series=500
        )
        found = told(exporter.collect_rows())
        assert ("ofipy_exporter_dropped_series", "ofipy_peer_messages_total") in found
        assert found["ofipy_exporter_dropped_series", "ofipy_process_messages_total"] == 200
        assert found["ofipy_operations_total", "train", "tcp", "send"] == 0

    def test_without_the_option_there_is_none(self, empty: Tree) -> None:
        found = told(collector(empty, snapshot(process(1, endpoint(sends=5)))).collect_rows())
        assert not any(name.startswith("ofipy_process_") for name, *_ in found)


class TestBound:
    def test_peers_are_shed_first(self, empty: Tree) -> None:
        busy = endpoint(
            peers=tuple(peer(f"host:{at}", at) for at in range(100)),
            messages={("sent", "eager"): messages(1, c0=1)},
        )
        exporter = Collector(
            Scans(snapshot(process(1, busy))), empty, version="1", peers=100, most_series=300
        )
        found = told(exporter.collect_rows())
        assert found["ofipy_exporter_dropped_series", "ofipy_peer_messages_total"] == 200
        assert found["ofipy_operations_total", "train", "tcp", "send"] == 0
        assert not any(name == "ofipy_peer_messages_total" for name, *_ in found)

    @pytest.mark.parametrize("most", [5, 10, 50, 200])
    def test_there_are_never_more(self, most: int) -> None:
        rows = Rows()
        for number in range(5):
            family = Family(f"f{number}", "gauge", ("n",), "")
            for label in range(10 * number):
                rows.add(family, (str(label),), label)
        shed(rows, most)
        assert sum(map(rows.series, rows.of)) <= most

    def test_what_is_few_is_whole(self) -> None:
        rows = Rows()
        rows.add(Family("f", "gauge", (), ""), (), 1)
        shed(rows, 1)
        assert told(rows) == {("f",): 1}


class TestState:
    """An exporter that starts again."""

    @pytest.fixture
    def machine(self, tmp_path: Path) -> Path:
        """A machine that has been started once."""
        root = tmp_path / "machine"
        (root / "proc/sys/kernel/random").mkdir(parents=True)
        (root / "proc/sys/kernel/random/boot_id").write_text("first\n")
        return root

    def export(self, machine: Path, *processes: Process, peers: int = 20) -> Told:
        """One exporter from its start to its end."""
        file = str(machine.with_name("state"))
        exporter = Collector(
            Scans(snapshot(*processes)), Tree(str(machine)), version="1", peers=peers, state=file
        )
        found = told(exporter.collect_rows())
        exporter.save()
        return found

    def busy(self, pid: int, sends: int) -> Process:
        sent = {("sent", "eager"): messages(10 * sends, c3=sends)}
        return process(pid, endpoint(sends=sends, messages=sent, peers=(peer("a", 10 * sends),)))

    def sums(self, found: Told) -> list[float | Distribution]:
        train = ("train", "tcp")
        return [
            found["ofipy_operations_total", *train, "send"],
            found["ofipy_messages_total", *train, "sent", "eager"],
            found["ofipy_message_bytes_total", *train, "sent", "eager"],
            found["ofipy_peer_messages_total", *train, "a", "tcp", "sent"],
        ]

    def test_no_sum_falls_and_nothing_counts_twice(self, machine: Path) -> None:
        assert self.sums(self.export(machine, self.busy(1, 10), self.busy(2, 5))) == [15, 15, 150, 15]
        assert self.sums(self.export(machine, self.busy(1, 11))) == [16, 16, 160, 16]
        assert self.sums(self.export(machine, self.busy(1, 11), self.busy(3, 4))) == [20, 20, 200, 20]

    def test_after_the_system_has_started_again_a_pid_is_another_process(self, machine: Path) -> None:
        self.export(machine, self.busy(1, 10))
        (machine / "proc/sys/kernel/random/boot_id").write_text("second\n")
        assert self.sums(self.export(machine, self.busy(1, 3))) == [13, 13, 130, 13]

    def test_fewer_peers(self, machine: Path) -> None:
        self.export(machine, self.busy(1, 10))
        found = self.export(machine, self.busy(1, 12), peers=0)
        assert found["ofipy_peer_messages_total", "train", "tcp", "other", "tcp", "sent"] == 2

    def test_it_is_the_owner_s(self, machine: Path) -> None:
        self.export(machine)
        assert machine.with_name("state").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        "text", ["", "no JSON", "[]", "{}", '{"version": 2}', '{"version": 1, "boot": "", "totals": {}}']
    )
    def test_another_file(self, machine: Path, text: str) -> None:
        machine.with_name("state").write_text(text)
        with pytest.raises(StateError):
            self.export(machine)
        assert machine.with_name("state").read_text() == text


class TestDevices:
    def of(self, machine: trees.Recorded, tmp_path: Path) -> Told:
        rows = Rows()
        add_devices(rows, Tree(str(machine.write(tmp_path / "machine"))))
        return told(rows)

    def test_infiniband(self, tmp_path: Path) -> None:
        found = self.of(trees.mlx5_infiniband(), tmp_path)
        one, two = ("mlx5_0", "1"), ("mlx5_0", "2")
        assert (
            found["ofipy_rdma_info", "mlx5_0", "mlx5_core", "20.35.1012", "MT_0000000223", "MT4123", "1"] == 1
        )
        assert [found["ofipy_rdma_state_id", *each] for each in (one, two)] == [4, 1]
        assert [found["ofipy_rdma_physical_state_id", *each] for each in (one, two)] == [5, 2]
        assert found["ofipy_rdma_rate_bytes_per_second", *one] == 25e9
        assert found["ofipy_rdma_pcie_bytes_per_second", "mlx5_0"] == 15.75e9
        assert found["ofipy_rdma_port_data_transmitted_bytes_total", *one] == 4000
        assert found["ofipy_rdma_port_transmit_wait_total", *one] == 77
        assert found["ofipy_rdma_packet_sequence_errors_total", *one] == 4
        assert found["ofipy_rdma_port_retries_total", *one] == 4
        assert found["ofipy_rdma_saturated_counters", *one] == 3
        assert found["ofipy_rdma_temperature_celsius", "mlx5_0", "asic"] == 61.5
        assert found["ofipy_rdma_temperature_critical_celsius", "mlx5_0", "asic"] == 105
        assert ("ofipy_rdma_port_retries_total", *two) not in found  # absent, not 0

    def test_congestion_control(self, tmp_path: Path) -> None:
        found = self.of(trees.mlx5_roce(), tmp_path)
        assert found["ofipy_rdma_np_cnp_packets_sent_total", "mlx5_10", "1"] == 9
        enabled = [key[1:] for key, value in found.items() if key[0] == "ofipy_rdma_ecn_enabled" and value]
        assert enabled == [("ens1f0np0", "3", "np")]

    def test_names_of_drivers_that_no_table_has(self, tmp_path: Path) -> None:
        found = self.of(trees.bnxt_re(), tmp_path)
        port = ("bnxt_re0", "1")
        assert found["ofipy_rdma_driver_events_total", *port, "rx_bytes"] == 300
        assert found["ofipy_rdma_driver_level", *port, "active_qps"] == 2
        assert found["ofipy_rdma_port_retries_total", *port] == 6

    def test_counters_of_a_device(self, tmp_path: Path) -> None:
        found = self.of(trees.efa(), tmp_path)
        assert found["ofipy_rdma_driver_events_total", "rdmap0s6", "", "submitted_cmds"] == 40
        assert found["ofipy_rdma_pcie_errors_total", "rdmap0s6", "correctable", "RxErr"] == 3

    def test_tcp(self, tmp_path: Path) -> None:
        found = self.of(trees.rxe(), tmp_path)
        assert found["ofipy_tcp_events_total", "RetransSegs"] == 4
        assert found["ofipy_tcp_connections",] == 2

    @pytest.mark.parametrize("machine", trees.ALL.values(), ids=trees.ALL)
    def test_all_machines(self, machine: trees.Recorded, tmp_path: Path) -> None:
        """Each row is told once, and fits its metric."""
        found = self.of(machine() if callable(machine) else machine, tmp_path)
        assert any(key[0] == "ofipy_rdma_state_id" for key in found)


class TestReference:
    PAGE = ROOT / "docs/reference/metrics.md"

    def test_the_page_has_a_line_for_each_metric(self) -> None:
        rows = re.findall(
            r"^\| `(ofipy_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$", self.PAGE.read_text(), re.MULTILINE
        )
        written = [
            (name, kind, tuple(re.findall(r"`(\w+)`", labels)), meaning)
            for name, kind, labels, meaning in rows
        ]
        families = [*PROCESS_FAMILIES, *PER_PROCESS_FAMILIES, *DEVICE_FAMILIES]
        assert written == [(each.name, each.kind, each.labels, each.help) for each in families]

    def test_names(self) -> None:
        families = [*PROCESS_FAMILIES, *PER_PROCESS_FAMILIES, *DEVICE_FAMILIES]
        assert len({each.name for each in families}) == len(families)
        for each in families:
            assert each.name.endswith("_total") == (each.kind == "counter")
            assert each.help.endswith(".")


class TestPlaces:
    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("127.0.0.1:19228", ("127.0.0.1", 19228)),
            ("[::1]:0", ("::1", 0)),
            ("localhost:1", ("localhost", 1)),
        ],
    )
    def test_right(self, text: str, place: tuple[str, int]) -> None:
        assert split_place(text) == place

    @pytest.mark.parametrize(
        "text", ["19228", ":19228", "host:", "host:70000", "::1:19228", "host:-1", "host:x"]
    )
    def test_wrong(self, text: str) -> None:
        with pytest.raises(click.UsageError):
            split_place(text)
