# SPDX-License-Identifier: BSD-3-Clause
"""The exporter as Prometheus sees it: formats, the server, the file, the command."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="could not import 'prometheus_client'")

from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from ofipy.exporter.collector import Collector
from ofipy.exporter.exposition import make_registry, write_file
from ofipy.exporter.server import Server
from ofipy.host.tree import Tree
from tests.host.snapshots import Scans, endpoint, messages, peer, process, snapshot
from tests.monitoring.server import get

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
NASTY = 'a"b\\c{d="e"}'


@pytest.fixture
def registry(machine: Path) -> CollectorRegistry:
    sent = {("sent", "eager"): messages(1000, c0=2, c6=4)}
    busy = endpoint(sends=6, bytes_sent=1000, messages=sent, peers=(peer(NASTY, 1000),))
    scans = Scans(snapshot(process(1, busy), process(2, busy, program=NASTY)))
    return make_registry(Collector(scans, Tree(str(machine)), version="1", peers=20).collect_rows)


@pytest.fixture
def server(registry: CollectorRegistry) -> Iterator[Server]:
    server = Server("127.0.0.1", 0, registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def check(promtool: str, page: str | bytes) -> None:
    text = page.encode() if isinstance(page, str) else page
    ran = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


class TestServer:
    def test_both_formats(self, server: Server) -> None:
        plain, open_ = get(server.url).decode(), get(server.url, Accept=OPENMETRICS).decode()
        assert open_.endswith("# EOF\n")
        for page in (parse(plain), parse_openmetrics(open_)):
            samples = {
                (each.name, *sorted(each.labels.items())): each.value
                for family in page
                for each in family.samples
            }

            def told(name: str, samples: dict[Any, float] = samples, **labels: str) -> float:
                return samples[name, *sorted(labels.items())]

            assert told("ofipy_sent_bytes_total", program="train", provider="tcp") == 1000
            assert told("ofipy_sent_bytes_total", program=NASTY, provider="tcp") == 1000
            sent = {"program": "train", "provider": "tcp", "direction": "sent"}
            assert told("ofipy_message_size_bytes_bucket", **sent, le="63.0") == 2
            assert told("ofipy_message_size_bytes_bucket", **sent, le="+Inf") == 6
            assert told("ofipy_message_size_bytes_count", **sent) == 6
            assert told("ofipy_message_size_bytes_sum", **sent) == 1000
            assert told("ofipy_rdma_state_id", device="mlx5_0", port="1") == 4

    def test_checked(self, server: Server, promtool: str) -> None:
        check(promtool, get(server.url))

    @pytest.mark.parametrize("path", ["/", "/metrics/x", "/../etc/passwd"])
    def test_nothing_else_is_there(self, server: Server, path: str) -> None:
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            get(server.url.removesuffix("/metrics") + path)
        caught.value.close()

    def test_clients_are_not_too_many(self, server: Server) -> None:
        silent = [socket.create_connection(server.server_address[:2]) for _ in range(16)]
        with pytest.raises(OSError, match=r"closed|reset"):
            get(server.url)
        for client in silent:
            client.close()
        while True:  # until the server has seen that they are gone
            with suppress(OSError):
                assert b"ofipy_info" in get(server.url)
                break

    def test_clients_that_say_nothing(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ofipy.exporter.server.Page.timeout", 0.1)
        with socket.create_connection(server.server_address[:2]) as client:
            assert client.recv(1) == b""

    def test_ipv6(self, registry: CollectorRegistry) -> None:
        try:
            server = Server("::1", 0, registry)
        except OSError:
            pytest.skip("no IPv6 here")
        with server:
            assert re.fullmatch(r"http://\[::1\]:\d+/metrics", server.url)


class TestFile:
    def test_it_is_replaced_at_once(self, registry: CollectorRegistry, tmp_path: Path) -> None:
        file = tmp_path / "ofipy.prom"
        file.write_text("before")
        with file.open() as reader:
            write_file(str(file), registry)
            assert reader.read() == "before"
        assert "ofipy_info" in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o644
        assert [each.name for each in tmp_path.iterdir()] == ["ofipy.prom"]

    def test_a_link_is_replaced_and_not_followed(self, registry: CollectorRegistry, tmp_path: Path) -> None:
        (tmp_path / "other").write_text("other")
        (tmp_path / "ofipy.prom").symlink_to("other")
        write_file(str(tmp_path / "ofipy.prom"), registry)
        assert (tmp_path / "other").read_text() == "other"

    def test_no_folder(self, registry: CollectorRegistry, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            write_file(str(tmp_path / "none/ofipy.prom"), registry)


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "ofipy", "exporter", *words]


def run(*words: str, code: int = 0, **environment: str) -> tuple[str, str]:
    ran = subprocess.run(
        command(*words),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == code, ran.stderr
    return ran.stdout, ran.stderr


class TestCommand:
    def test_once(self, machine: Path, promtool: str) -> None:
        page, said = run("--once", "--root", str(machine))
        assert said == ""
        assert re.search(
            r'^ofipy_rdma_rate_bytes_per_second{device="mlx5_0",port="1"} 2\.5e\+0?10$', page, re.M
        )
        assert "ofipy_processes" not in page  # those of this host are not the recorded machine's
        check(promtool, page)

    def test_once_into_a_file(self, machine: Path, tmp_path: Path) -> None:
        file = tmp_path / "ofipy.prom"
        assert run("--once", "--textfile", str(file), "--root", str(machine))[0] == ""
        assert file.read_text() == run("--once", "--root", str(machine))[0]

    def test_listening_until_a_signal(self, machine: Path) -> None:
        words = command("--listen", "127.0.0.1:0", "--root", str(machine))
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            (url,) = re.findall(r"^metrics are at (http://127\.0\.0\.1:\d+/metrics)$", said)
            assert get(url) == run("--once", "--root", str(machine))[0].encode()
            process.send_signal(signal.SIGTERM)
            assert process.stderr.read() == ""
        assert process.returncode == 0

    def test_every_address_is_told_who_can_read(self, machine: Path) -> None:
        words = command("--listen", "0.0.0.0:0", "--root", str(machine))
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            process.stderr.readline()
            assert "everybody who reaches this address" in process.stderr.readline()
            process.terminate()

    def test_a_file_again_and_again(self, machine: Path, tmp_path: Path) -> None:
        file = tmp_path / "ofipy.prom"
        words = command("--textfile", str(file), "--interval", "0.05", "--root", str(machine))
        with subprocess.Popen(words) as process:
            try:
                for _ in range(3):
                    while not file.exists():
                        assert process.poll() is None
                    assert "ofipy_info" in file.read_text()
                    file.unlink()
            finally:
                process.terminate()
        assert process.returncode == 0

    @pytest.mark.parametrize(
        ("words", "code", "says"),
        [
            (["--once", "--listen", "127.0.0.1:0"], 2, "give no --listen"),
            (["--listen", "19228"], 2, "an address and a port are meant"),
            (["--listen", "192.0.2.1:1"], 1, "cannot listen at 192.0.2.1:1"),
            (["--textfile", "/nonexistent/x.prom"], 1, "No such file"),
            (["--peers", "101", "--once"], 2, "101"),
        ],
    )
    def test_what_is_wrong(self, machine: Path, words: list[str], code: int, says: str) -> None:
        assert says in run(*words, "--root", str(machine), code=code)[1]

    def test_without_the_client(self, machine: Path, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['prometheus_client'] = None\n")
        said = run("--once", "--root", str(machine), code=3, PYTHONPATH=str(tmp_path))[1]
        assert "needs the package prometheus-client: pip install '.[monitor]'" in said
