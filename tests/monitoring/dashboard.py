# SPDX-License-Identifier: BSD-3-Clause
"""The dashboard of ``monitoring/``, as Grafana reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["expressions", "read_dashboard"]

FILE = Path(__file__).resolve().parents[2] / "monitoring/dashboard.json"
VALUES = {"$instance": ".*", "$program": ".*", "$__rate_interval": "10s"}


def read_dashboard() -> dict[str, Any]:
    """The document."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def expressions(panel: dict[str, Any]) -> list[tuple[str, str]]:
    """Queries of a panel, as Grafana sends them for all hosts and programs, each with its legend."""
    found = []
    for target in panel.get("targets", ()):
        expression = target["expr"]
        for name, value in VALUES.items():
            expression = expression.replace(name, value)
        assert "$" not in expression
        found.append((expression, target["legendFormat"]))
    return found
