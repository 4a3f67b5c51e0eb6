# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, plans and output lines."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import ofipy
from fabtests.base.output import MachineLines, Row, TableLines
from ofipy.pingpong.plan import PingPongPlan, fill_time
from ofipy.pingpong.side import TAG_HELLO, Side
from ofipy.pingpong.sizes import ALL_SIZES, default_iterations, parse_sizes, shorten_bytes, shorten_count


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("64", (64,)),
        ("0x40", (64,)),
        ("all", ALL_SIZES),
        ("l:8,1024,8", (8, 1024, 8)),
        ("8,1m", (8, 1 << 20)),
        ("64k", (64 << 10,)),
        ("l:8, 2K,1G", (8, 2 << 10, 1 << 30)),
        ("r:1k,1k,4k", (1024, 2048, 3072, 4096)),
        ("r:10,5,20", (10, 15, 20)),
        ("r:10,6,20", (10, 16)),
    ],
)
def test_sizes_are_read(text: str, sizes: tuple[int, ...]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "l:",
        "l:8,x",
        "k",
        "1.5k",
        "8,-1k",
        "0k",
        "1kk",
        "r:1,2",
        "r:1,0,4",
        "r:9,1,4",
        "0",
        "-8",
        "q:1",
    ],
)
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|range"):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(8, "8"), (1023, "1023"), (1024, "1k"), (1536, "1.50k"), (1 << 20, "1m"), (5 << 30, "5g")],
)
def test_bytes_are_shortened(size: int, text: str) -> None:
    assert shorten_bytes(size) == text


@pytest.mark.parametrize(("count", "text"), [(999, "999"), (10000, "10k"), (2_500_000, "2m"), (10**9, "1b")])
def test_counts_are_shortened(count: int, text: str) -> None:
    assert shorten_count(count) == text


def test_larger_messages_are_sent_less_often() -> None:
    counts = [default_iterations(size) for size in (8, 1 << 16, 1 << 20)]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 3


def test_a_plan_travels() -> None:
    plan = PingPongPlan(sizes=(8, 64), iterations=5, warmup=1, verify=True, delivery=True, samples=3)
    assert PingPongPlan.decode(plan.encode()) == plan


def test_a_plan_of_another_version_is_refused() -> None:
    fields = json.loads(PingPongPlan(sizes=(8,)).encode())
    fields["protocol"] = 99
    with pytest.raises(
        ofipy.IncompatiblePeer, match=r"version 99 of the plan .* version 1 .*update ofipy on this side"
    ):
        PingPongPlan.decode(json.dumps(fields).encode())
    del fields["protocol"]
    with pytest.raises(ValueError, match="a version is meant"):
        PingPongPlan.decode(json.dumps(fields).encode())


def test_both_sides_are_told_of_a_plan_of_another_version() -> None:
    with Side(first=False, provider="shm") as server, Side(first=True, provider="shm") as client:
        client.meet(server.offer())
        fields = json.loads(PingPongPlan(sizes=(8,)).encode()) | {"protocol": 2}
        client.endpoint.tsend(json.dumps(fields).encode(), client.peer, tag=TAG_HELLO)
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(client.sync)
            with pytest.raises(ofipy.IncompatiblePeer, match=r"version 2 of the plan .* this side version 1"):
                server.answer()
            # In truth it is of the same release.
            with pytest.raises(ofipy.IncompatiblePeer, match="version 1 of the plan"):
                waiting.result(timeout=60)


def test_a_plan_with_other_fields_is_refused() -> None:
    fields = json.loads(PingPongPlan(sizes=(8,)).encode())
    with pytest.raises(ValueError, match="another version of the plan: more"):
        PingPongPlan.decode(json.dumps(fields | {"more": 1}).encode())


def test_repetitions_fill_a_time() -> None:
    assert fill_time(20.0, 0.3) == 67
    assert fill_time(20.0, 30.0, least=3) == 3
    assert fill_time(20.0, 0.001, least=3, most=500) == 500


ROW = Row(bytes=1024, iterations=1000, seconds=0.01, transfers=2)


def test_a_transfer_is_half_a_round_trip() -> None:
    assert ROW.usec_per_transfer == pytest.approx(5.0)
    assert ROW.total == 2 * 1024 * 1000
    assert ROW.mb_per_sec == pytest.approx(204.8)
    assert ROW.million_per_sec == pytest.approx(0.2)


def test_the_table_has_libfabrics_columns() -> None:
    lines: list[str] = []
    table = TableLines(lines.append)
    table.add(ROW)
    table.add(ROW)
    assert lines[0].split() == ["bytes", "iters", "total", "time", "MB/sec", "usec/xfer", "Mxfers/sec"]
    assert lines[1].split() == ["1k", "1k", "1.95m", "0.01s", "204.80", "5.00", "0.20"]
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1  # the columns line up


def test_percentiles_stand_behind_them() -> None:
    lines: list[str] = []
    TableLines(lines.append).add(Row(64, 10, 0.01, 2, (1.0, 2.5, 3.25)))
    assert lines[0].split()[-4:] == ["Mxfers/sec", "p50", "p99", "p99.9"]
    assert lines[1].split()[-3:] == ["1.00", "2.50", "3.25"]
    assert len({len(line) for line in lines}) == 1


def test_machine_lines_are_mappings_under_the_command() -> None:
    lines: list[str] = []
    MachineLines(lines.append, command="fabtests x").add(ROW)
    assert lines[:2] == ["---", "fabtests x :"]
    assert lines[2] == (
        "- { xfer_size: 1024, iterations: 1000, total: 2048000, time: 0.010000, MB/sec: 204.800000, "
        "usec/xfer: 5.000000, Mxfers/sec: 0.200000 }"
    )
