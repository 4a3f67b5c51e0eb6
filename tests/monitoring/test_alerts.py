# SPDX-License-Identifier: BSD-3-Clause
"""The alerts and the scrape configuration of ``monitoring/``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ofipy.exporter.device_families import DEVICE_FAMILIES
from ofipy.exporter.process_families import PROCESS_FAMILIES

FOLDER = Path(__file__).resolve().parents[2] / "monitoring"
SERIES = {
    name
    for each in (*PROCESS_FAMILIES, *DEVICE_FAMILIES)
    for name in (
        each.name,
        *(f"{each.name}_{part}" for part in ("bucket", "count", "sum") if each.kind == "histogram"),
    )
}


def run(*words: str) -> None:
    ran = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_configuration(promtool: str) -> None:
    run(promtool, "check", "config", "prometheus.yml")


def test_alerts_fire_when_they_should(promtool: str) -> None:
    run(promtool, "test", "rules", "alerts_test.yml")


def test_every_alert_is_tested_with_and_without_its_fault() -> None:
    alerts = re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text())
    tests = (FOLDER / "alerts_test.yml").read_text()
    assert alerts
    assert re.findall(r"alertname: (\w+), eval_time: \w+, exp_alerts: \[\]", tests) == alerts
    assert re.findall(r"alertname: (\w+)\n *eval_time: \w+\n *exp_alerts:\n *- exp_labels", tests) == alerts


def test_metrics_exist() -> None:
    for name in ("alerts.yml", "alerts_test.yml", "dashboard.json"):
        used = set(re.findall(r"\bofipy_\w+", (FOLDER / name).read_text()))
        assert used
        assert used - SERIES == set()
