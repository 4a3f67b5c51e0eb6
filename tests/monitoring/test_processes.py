# SPDX-License-Identifier: BSD-3-Clause
"""Real processes: what Prometheus has summed is what their endpoints have counted, also when they were killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.exporter.collector import Collector
from ofipy.host.tree import Tree
from ofipy.statistics import Reader, Snapshot
from tests.monitoring.server import get, running

SENDER = """
import dataclasses
import json
import sys

import ofipy

with ofipy.open(provider=sys.argv[1]) as a, ofipy.open(provider=sys.argv[1]) as b:
    there = a.insert(b.address)

    def send(length, number):
        for _ in range(number):
            sent = a.tsend(bytes(length), there, tag=1)
            b.trecv(tag=1).wait(timeout=60)
            sent.wait(timeout=60)

    send(8, 10)
    send(100_000, 5)
    print(json.dumps([dataclasses.asdict(each.stats()) for each in (a, b)]), flush=True)
    for line in sys.stdin:
        send(8, int(line))
        print("sent", flush=True)
"""
FAMILIES = {
    "sends": 'ofipy_operations_total{operation="send"}',
    "receives": 'ofipy_operations_total{operation="receive"}',
    "bytes_sent": "ofipy_sent_bytes_total",
    "bytes_received": "ofipy_received_bytes_total",
    "errors": "ofipy_operation_errors_total",
}


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "ofipy", *words]


@contextmanager
def sender(
    folder: Path, name: str, provider: str = "shm"
) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    """A program of this name that has sent. Yields it with the sums of what its endpoints have counted."""
    (folder / name).write_text(SENDER)
    words = [sys.executable, "-P", name, provider]
    with subprocess.Popen(
        words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            told: list[dict[str, Any]] = json.loads(process.stdout.readline())
            yield process, {field: sum(each[field] for each in told) for field in FAMILIES}
        finally:
            process.kill()


@contextmanager
def exporter(*words: str) -> Iterator[str]:
    """The command. Yields the URL of its page."""
    with subprocess.Popen(
        command("exporter", "--listen", "127.0.0.1:0", *words), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            (url,) = re.findall(r"http://\S+", process.stderr.readline())
            yield url
        finally:
            process.terminate()


def name_of_a_program(request: pytest.FixtureRequest) -> str:
    """One that no other test on this host has."""
    test = "".join(each if each.isalnum() else "_" for each in request.node.name)
    return f"sender_{os.getpid()}_{test}.py"


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_sums_are_those_of_the_endpoints(
    provider: str, prometheus_program: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("prometheus_client", reason="could not import 'prometheus_client'")
    name = name_of_a_program(request)

    def query(metric: str) -> str:
        labels = metric.removesuffix("}").partition("{")
        more = f", {labels[2]}" if labels[2] else ""
        return f'sum({labels[0]}{{program="{name}"{more}}})'

    with exporter("--interval", "0.1") as url:
        place = url.removeprefix("http://").partition("/")[0]
        with running(prometheus_program, tmp_path, {"here": place}) as prometheus:
            with sender(tmp_path, name, provider) as (process, counted):
                assert counted["sends"] == 15
                assert counted["bytes_sent"] == 500_080
                for field, metric in FAMILIES.items():
                    prometheus.wait_for_value(query(metric), counted[field])
                prometheus.wait_for_value(query('ofipy_messages_total{direction="sent"}'), 15)
                prometheus.wait_for_value(query('ofipy_peer_bytes_total{direction="sent"}'), 500_080)
                process.send_signal(signal.SIGKILL)
                process.wait()
            prometheus.wait_for_value(f'count(ofipy_endpoints{{program="{name}"}}) or vector(0)', 0)
            for field, metric in FAMILIES.items():
                assert prometheus.value(query(metric)) == counted[field]
            with sender(tmp_path, name, provider) as (_, again):
                for field, metric in FAMILIES.items():
                    prometheus.wait_for_value(query(metric), counted[field] + again[field])
            reset = f'resets(ofipy_sent_bytes_total{{program="{name}"}}[5m])'
            assert prometheus.value(reset) == 0


def test_an_exporter_that_starts_again(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("prometheus_client", reason="could not import 'prometheus_client'")
    name = name_of_a_program(request)
    state = str(tmp_path / "state")

    def sends() -> float:
        with exporter("--state", state) as url:
            page = get(url).decode()
        told = re.findall(
            rf'^ofipy_operations_total{{operation="send",program="{name}".*}} (\S+)$', page, re.M
        )
        return sum(map(float, told))

    with sender(tmp_path, name) as (process, counted):
        assert sends() == counted["sends"]
        assert sends() == counted["sends"]
        process.kill()
        process.wait()
        assert sends() == counted["sends"]
    with sender(tmp_path, name) as (_, again):
        assert sends() == counted["sends"] + again["sends"]


def test_once_is_what_promtool_accepts(promtool: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("prometheus_client", reason="could not import 'prometheus_client'")
    name = name_of_a_program(request)
    with sender(tmp_path, name):
        page = subprocess.run(
            command("exporter", "--once"), capture_output=True, timeout=100, check=True
        ).stdout
    assert name.encode() in page
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


class Own:
    """The page of this process alone."""

    def __init__(self) -> None:
        self._reader = Reader()

    def scan(self) -> Snapshot:
        """Read it."""
        found = self._reader.scan()
        return Snapshot(tuple(each for each in found.processes if each.pid == os.getpid()), found.unreadable)


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_peers_of_closed_endpoints_count_once(provider: str, tmp_path: Path) -> None:
    """Some endpoints are seen by a scan before they close, some are not."""
    exporter = Collector(Own(), Tree(str(tmp_path)), version="1", peers=20)

    def moved() -> tuple[float, float]:
        """Bytes of all peers, and of all endpoints."""
        rows = {family.name: found for family, found in exporter.collect_rows().of.items()}
        names = (("ofipy_peer_bytes_total",), ("ofipy_sent_bytes_total", "ofipy_received_bytes_total"))
        by_peer, by_endpoint = (
            sum(value for name in group for labels, value in rows.get(name, ()) if labels[1] == provider)
            for group in names
        )
        return by_peer, by_endpoint

    before = moved()
    with ofipy.open(provider=provider) as b:
        for turn in range(3):
            with ofipy.open(provider=provider) as a:
                there = a.insert(b.address)
                for _ in range(10):
                    a.tsend(bytes(100), there, tag=1).wait(timeout=60)
                    b.trecv(tag=1).wait(timeout=60)
                if turn != 1:
                    exporter.scan()
        open_still = moved()
    closed = moved()
    for now in (open_still, closed):
        assert [one - other for one, other in zip(now, before, strict=True)] == [6000, 6000]


def test_top_shows_what_a_process_sends(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The number of sends between two looks is told, since each look waits for the line of the one before."""
    name = name_of_a_program(request)
    with sender(tmp_path, name) as (process, _):
        assert process.stdin is not None
        assert process.stdout is not None
        words = command("top", "--json", "-i", "0.2")
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as top:
            try:
                assert top.stdout is not None
                found = 0.0
                while found < 300:
                    process.stdin.write("100\n")
                    process.stdin.flush()
                    assert process.stdout.readline() == "sent\n"
                    document = json.loads(top.stdout.readline())
                    (row,) = [each for each in document["processes"] if each["program"] == name]
                    found += row["rates"]["sends"] * document["seconds"]
                assert row["pid"] == process.pid
                assert {each["provider"] for each in document["endpoints"] if each["pid"] == process.pid} == {
                    "shm"
                }
                assert [each["way"] for each in document["peers"] if each["pid"] == process.pid] == [
                    "shm"
                ] * 2
            finally:
                top.terminate()
