# SPDX-License-Identifier: BSD-3-Clause
"""Draw the dashboard without Grafana: ``python -m tests.monitoring.picture FILE [SECONDS]``.

Prometheus scrapes a recorded machine with a load that rises and falls. Each panel is drawn from its own queries.
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from PIL import Image

from ofipy.exporter.collector import Collector
from ofipy.exporter.exposition import make_registry
from ofipy.exporter.server import Server
from ofipy.host.tree import Tree
from ofipy.statistics import Snapshot
from tests.host import trees
from tests.host.snapshots import endpoint, messages, peer, process, snapshot
from tests.monitoring.dashboard import expressions, read_dashboard
from tests.monitoring.server import Prometheus, running

UNITS = {"Bps": "B/s", "bytes": "B", "ops": "/s", "celsius": "°C", "percentunit": "", "none": ""}
RISING = (
    "port_xmit_data",
    "port_rcv_data",
    "port_xmit_wait",
    "packet_seq_err",
    "np_cnp_sent",
    "symbol_error",
)
PRINTED = re.compile(r"(duration: )?(?<=[, ])([1-9][0-9]*)(?=[,\n])")
"""Numbers that tools have printed; a duration is in microseconds."""


class Load:
    """Two programs and a machine whose traffic rises and falls."""

    def __init__(self, machine: Path) -> None:
        self._began = self._last = time.monotonic()
        self._files = [file for name in RISING for file in machine.rglob(name)]
        self._printed = list(machine.glob("commands/*.out"))
        self._small = self._large = 0

    def scan(self) -> Snapshot:
        """Let time pass for the counters."""
        now = time.monotonic()
        level = 1 + math.sin((now - self._began) / 4)
        self._small += int(40_000 * level * (now - self._last))
        self._large += int(900 * (2 - level) * (now - self._last))
        self._last = now
        for file in self._files:
            rate = 800_000_000 if "data" in file.name else 3
            file.write_text(f"{int(file.read_text()) + int(rate * level)}\n")
        for file in self._printed:
            file.write_text(PRINTED.sub(lambda match: raise_number(match, level), file.read_text()))
        peers = tuple(peer(f"node{at}:7471", self._small * 64 // (at + 2)) for at in range(4))
        sent = {("sent", "eager"): messages(self._small * 64, c6=self._small)}
        got = {("received", "attached"): messages(self._large << 20, c20=self._large)}
        common = {"last_progress": now, "opened": self._began}
        queue = int(300 * level)
        one = endpoint(
            sends=self._small,
            bytes_sent=self._small * 64,
            messages=sent,
            peers=peers,
            pending=queue,
            peers_up=4,
            **common,
        )
        two = endpoint(
            provider="shm",
            receives=self._large,
            bytes_received=self._large << 20,
            messages=got,
            unexpected_messages=queue,
            **common,
        )
        return snapshot(process(1, one, program="train.py"), process(2, two, program="serve.py"))


def raise_number(match: re.Match[str], level: float) -> str:
    """The number that a tool prints next."""
    return f"{match[1] or ''}{int(match[2]) + int((20_000 if match[1] else 3) * level)}"


def draw_series(axes: Axes, prometheus: Prometheus, panel: dict[str, Any], seconds: float) -> None:
    """Draw every series of a panel."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for expression, legend in expressions(panel):
        for series in prometheus.query_range(expression, seconds, 1):
            labels = series["metric"]
            text = re.sub(r"\{\{(\w+)\}\}", lambda match, labels=labels: labels.get(match[1], ""), legend)
            points = [(float(at), float(value)) for at, value in series["values"]]
            axes.plot(
                [at - points[-1][0] for at, _ in points],
                [value for _, value in points],
                label=text,
                linewidth=1,
            )
    axes.set_title(panel["title"], fontsize=8, loc="left")
    axes.yaxis.set_major_formatter(EngFormatter(UNITS[unit]))
    axes.tick_params(labelsize=6)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=5, loc="upper left", ncols=2)


def draw(prometheus: Prometheus, seconds: float) -> Figure:
    """The dashboard with the panels where they stand."""
    panels = [panel for panel in read_dashboard()["panels"] if panel["type"] != "row"]
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = Figure(figsize=(15, bottom * 0.3))
    for panel in panels:
        place = panel["gridPos"]
        left, width = place["x"] / 24 + 0.035, place["w"] / 24 - 0.05
        top, height = 1 - place["y"] / bottom - 0.02, place["h"] / bottom - 0.03
        draw_series(figure.add_axes((left, top - height, width, height)), prometheus, panel, seconds)
    return figure


def main(file: str, seconds: float = 40.0) -> None:
    """Run everything, and write the picture."""
    program = shutil.which("prometheus")
    if program is None:
        raise SystemExit("prometheus is not installed (Debian's package prometheus)")
    with tempfile.TemporaryDirectory() as folder:
        root = trees.together().write(Path(folder) / "machine")
        collector = Collector(Load(root), Tree(str(root)), version="1", peers=20)
        server = Server("127.0.0.1", 0, make_registry(collector.collect_rows))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = server.url.removeprefix("http://").partition("/")[0]
        with running(program, Path(folder), {"node1": place}) as prometheus:
            time.sleep(seconds)
            draw(prometheus, seconds - 10).savefig(file, dpi=70)
    Image.open(file).quantize(64).save(file, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
