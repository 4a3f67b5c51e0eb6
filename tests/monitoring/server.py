# SPDX-License-Identifier: BSD-3-Clause
"""A Prometheus of its own for a test: on loopback, with a folder of its own, ended by its process."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ports import free_port

__all__ = ["Prometheus", "get", "running"]

PATIENCE = 60.0  # seconds; a loaded machine is slow


def get(url: str, **headers: str) -> bytes:
    """The page at a URL."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
        body: bytes = answer.read()
    return body


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Series with their newest values."""
        document = json.loads(get(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        assert document["status"] == "success"
        found: list[dict[str, Any]] = document["data"]["result"]
        return found

    def query_range(self, expression: str, seconds: float, step: float) -> list[dict[str, Any]]:
        """Series with their values of the last seconds."""
        now = time.time()
        asked = {"query": expression, "start": now - seconds, "end": now, "step": step}
        document = json.loads(get(f"{self.url}/api/v1/query_range?{urllib.parse.urlencode(asked)}"))
        found: list[dict[str, Any]] = document["data"]["result"]
        return found

    def value(self, expression: str) -> float | None:
        """The newest value of one series; None where there is none yet."""
        found = self.query(expression)
        assert len(found) <= 1
        return float(found[0]["value"][1]) if found else None

    def wait_for(self, expression: str) -> list[dict[str, Any]]:
        """What an expression gives, as soon as it gives something."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self.query(expression)):
            assert time.monotonic() < deadline, f"no data: {expression}"
            time.sleep(0.2)
        return found

    def wait_for_value(self, expression: str, value: float) -> None:
        """Wait until the one series of an expression has a value."""
        deadline = time.monotonic() + PATIENCE
        while (now := self.value(expression)) != value:
            assert time.monotonic() < deadline, f"{expression} is {now}, not {value}"
            time.sleep(0.2)


@contextmanager
def running(program: str, folder: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Start Prometheus, and end it.

    Parameters
    ----------
    program : str
        Its path.
    folder : Path
        Where its configuration and its data lie.
    targets : mapping of str to str
        Host and port of each exporter, by the name of its instance.
    """
    port = free_port()
    static = [{"targets": [place], "labels": {"instance": name}} for name, place in targets.items()]
    configuration = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "ofipy", "static_configs": static}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML
    words = [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen([program, *words], stderr=log) as process:
        server = Prometheus(f"http://127.0.0.1:{port}")
        try:
            wait_until_ready(server, process, folder / "log")
            yield server
        finally:
            process.terminate()


def wait_until_ready(server: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            get(f"{server.url}/-/ready")
            return
        time.sleep(0.1)
    raise AssertionError(f"Prometheus is not ready: {log.read_text()}")
