# SPDX-License-Identifier: BSD-3-Clause
"""Findings as one HTML file that needs no other: pictures are inside it, and it loads nothing."""

from collections.abc import Iterable, Sequence
from html import escape

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.picture import COLOURS, draw_ladder, worst_of

__all__ = ["write_page"]

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #dde3e9; }
td.source { color: #5c6b7a; font: 12px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.state { font-weight: 600; white-space: nowrap; }
svg { max-width: 100%; height: auto; } svg.ladder text { font: 14px system-ui, sans-serif; }
"""
_HEADINGS = ("rule", "where", "state", "what is there", "measured", "threshold", "what to do", "sources")


def write_page(
    findings: Sequence[Finding], *, host: str | None, peer: str | None = None, graph: str | None = None
) -> str:
    """The page.

    Parameters
    ----------
    findings : sequence of Finding
        What was found.
    host, peer : str, optional
        The names of both sides.
    graph : str, optional
        The host's topology as SVG, if it could be drawn.
    """
    title = f"ofipy doctor: {host or 'this host'}" + (f" and {peer}" if peer else "")
    bad = [each for each in findings if each.is_bad]
    good = [each for each in findings if not each.is_bad]
    verdict = (
        f"{len(bad)} of {len(findings)} findings to look at"
        if bad
        else f"all {len(findings)} findings in order"
    )
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="state" style="color:{COLOURS[worst_of(findings)]}">{verdict}</p>',
        draw_ladder(findings),
        *write_table("To look at", sorted(bad, key=lambda each: each.state is not State.FAILED)),
        *write_table("In order, or not judged", good),
    ]
    if graph is not None:
        parts += ["<h2>Topology</h2>", graph[max(graph.find("<svg"), 0) :]]
    return "\n".join([*parts, "</body></html>", ""])


def write_table(title: str, findings: Sequence[Finding]) -> Iterable[str]:
    """A row for each finding; nothing where there is none."""
    if not findings:
        return
    yield f"<h2>{escape(title)}</h2>"
    yield "<table><tr>" + "".join(f"<th>{each}</th>" for each in _HEADINGS) + "</tr>"
    for each in findings:
        cells = (
            each.text,
            say_figure(each.measured, each.rule.unit),
            say_figure(each.threshold, each.rule.unit),
            each.remedy,
        )
        yield (
            f"<tr><td>{escape(each.rule.id)}</td><td>{escape(each.place)}</td>"
            f'<td class="state" style="color:{COLOURS[each.state]}">{each.state}</td>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + f'<td class="source">{escape(", ".join(each.sources))}</td></tr>'
        )
    yield "</table>"


def say_figure(figure: float | None, unit: str) -> str:
    """A figure with its unit; nothing where there is none."""
    return f"{figure:g} {unit}".strip() if figure is not None else ""
