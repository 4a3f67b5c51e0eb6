# SPDX-License-Identifier: BSD-3-Clause
"""Each query of the dashboard gives data, asked of a Prometheus that scrapes a recorded machine and processes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="could not import 'prometheus_client'")

from ofipy.exporter.collector import Collector
from ofipy.exporter.exposition import make_registry
from ofipy.exporter.server import Server
from ofipy.host.tree import Tree
from ofipy.statistics import Snapshot
from tests.host.snapshots import endpoint, messages, peer, process, snapshot
from tests.monitoring.dashboard import expressions, read_dashboard
from tests.monitoring.server import running


class Busy:
    """A process that sends something between any two scans."""

    def __init__(self) -> None:
        self._scans = 0

    def scan(self) -> Snapshot:
        self._scans += 1
        number = self._scans
        sent = {("sent", "eager"): messages(64 * number, c6=number)}
        busy = endpoint(sends=number, bytes_sent=64 * number, messages=sent, peers=(peer("a", 64 * number),))
        return snapshot(process(1, busy))


@contextmanager
def exporting(machine: Path) -> Iterator[str]:
    """An exporter in this process. Yields its host and port."""
    collector = Collector(Busy(), Tree(str(machine)), version="1", peers=20)
    server = Server("127.0.0.1", 0, make_registry(collector.collect_rows))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.url.removeprefix("http://").partition("/")[0]
    finally:
        server.shutdown()
        server.server_close()


def test_every_query_gives_data(prometheus_program: str, machine: Path, tmp_path: Path) -> None:
    with exporting(machine) as place, running(prometheus_program, tmp_path, {"a": place}) as prometheus:
        asked = [each for panel in read_dashboard()["panels"] for each, _ in expressions(panel)]
        assert len(asked) > 40
        for expression in asked:
            assert prometheus.wait_for(expression)
        (sizes,) = [each for each in asked if "0.5," in each]
        assert 0 < float(prometheus.wait_for(sizes)[0]["value"][1]) <= 511


def test_variables_name_labels_that_exist() -> None:
    asked = [each["query"] for each in read_dashboard()["templating"]["list"] if each["type"] == "query"]
    assert [re.sub(r"\{.*\}", "", each) for each in asked] == [
        "label_values(ofipy_info, instance)",
        "label_values(ofipy_operations_total, program)",
    ]


def test_panels() -> None:
    """Each has a title, a place of its own and its data source; ids are unique."""
    panels = read_dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert panel["title"]
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
        assert panel["type"] == "row" or panel["datasource"]["uid"] == "${datasource}"
