# SPDX-License-Identifier: BSD-3-Clause
"""A result as one page of HTML that needs nothing beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from fabtests.compare.report.against import Change, row_name
from fabtests.compare.report.charts import charts_of
from fabtests.compare.report.figures import svg_of
from fabtests.compare.statistics import EVEN, judge
from fabtests.compare.tables import UNITS, show_number

__all__ = ["build_page"]

TEMPLATE = Path(__file__).with_name("page.html")
Row = dict[str, Any]


def times_as_good(row: Row, ratio: float) -> float:
    """What ofipy is beside the peer: 2 for half of the time, or twice the rate."""
    return 1 / ratio if row["metric"].startswith("usec") else ratio


def bars_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Every bar with what it is judged by, those that are missed first."""
    order = {False: 0, None: 1, True: 2}
    found = [judged(row, bar) for row in document["rows"] for bar in row["bars"]]
    return sorted(found, key=lambda bar: order[bar["met"]])


def judged(row: Row, bar: dict[str, Any]) -> dict[str, Any]:
    """A bar on the ratio to a peer, or on a key of the row, and what it is judged by."""
    limit = f"{'≥' if bar['at_least'] else '≤'} {bar['limit']:.3g}"
    shown = {"row": row_name(row), "met": bar["met"], "why": ""}
    if key := bar.get("key"):
        return shown | {"limit": f"{limit} {key}", "value": row.get(key)}
    peer = row["peers"].get(bar["peer"], {})
    beside, absence = bar["peer"], f"{bar['peer']} did not take part"
    if among := ", ".join(bar.get("among", ())):
        beside, absence = f"the best of {among}", f"none of {among} took part"
    why = peer.get("note", absence)
    return shown | {"limit": f"{limit} × {beside}", "value": peer.get("ratio"), "why": why}


def behind(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows in which a peer is ahead by more than what is called even, the furthest first."""
    found: list[dict[str, Any]] = []
    for row in document["rows"]:
        for name, peer in row["peers"].items():
            factor = times_as_good(row, peer["ratio"]) if peer["ratio"] is not None else 1.0
            if factor < 1 - EVEN:
                found.append({"row": row_name(row), "peer": name, "factor": 1 / factor})
    return sorted(found, key=lambda each: -each["factor"])


def cases_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The cases with their charts and rows."""
    charts = charts_of(document)
    cases = []
    for name in dict.fromkeys(row["case"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["case"] == name]
        cases.append(
            {
                "name": name,
                "drawings": [svg_of(chart) for chart in charts if chart.case == name],
                "size_key": "bytes" if "bytes" in rows[0] else "depth",
                "peers": list(dict.fromkeys(peer for row in rows for peer in row["peers"])),
                "rows": rows,
            }
        )
    return cases


def show_ratio(row: Row, peer: dict[str, Any]) -> dict[str, Any]:
    """A ratio and how it is to be coloured."""
    if peer["ratio"] is None:
        return {"text": "?", "kind": "unknown", "why": peer.get("note", "")}
    kind = judge(peer["ratio"], higher_is_better=not row["metric"].startswith("usec"))
    return {"text": f"× {peer['ratio']:.3g}", "kind": kind, "why": ""}


def build_page(document: dict[str, Any], changes: Sequence[Change] = ()) -> str:
    """Build the page.

    Parameters
    ----------
    document : dict
        As printed by ``fabtests compare --json``.
    changes : sequence of Change, optional
        Against an earlier result.

    Returns
    -------
    str
        HTML, with the drawings in it.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    bars = bars_of(document)
    page: str = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        document=document,
        machine={key: value for key, value in document["machine"].items() if value not in (None, [])},
        bars=bars,
        counts={met: sum(bar["met"] is met for bar in bars) for met in (True, False, None)},
        behind=behind(document),
        cases=cases_of(document),
        changes=sorted(changes, key=lambda change: -change.slowdown),
        units=UNITS,
        number=show_number,
        ratio=show_ratio,
        even=f"{EVEN:.0%}",
    )
    return page
