# SPDX-License-Identifier: BSD-3-Clause
"""Findings as one JSON document."""

from collections.abc import Sequence
from typing import Any

from ofipy.doctor.finding import Finding

__all__ = ["SCHEMA", "describe", "describe_finding"]

SCHEMA = 1


def describe(findings: Sequence[Finding], **more: Any) -> dict[str, Any]:
    """The document: the findings as ``checks``, and what else belongs to it, such as ``host`` and ``peer``."""
    return {"schema": SCHEMA, **more, "checks": [describe_finding(each) for each in findings]}


def describe_finding(finding: Finding) -> dict[str, Any]:
    """One of them."""
    rule = finding.rule
    return {
        "id": rule.id,
        "name": rule.name,
        "step": rule.step,
        "state": finding.state,
        "place": finding.place,
        "finding": finding.text,
        "remedy": finding.remedy,
        "measured": finding.measured,
        "threshold": finding.threshold,
        "unit": rule.unit,
        "sources": list(finding.sources),
    }
