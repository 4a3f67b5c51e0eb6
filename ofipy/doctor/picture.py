# SPDX-License-Identifier: BSD-3-Clause
"""The ladder as a picture: a rung for each step, in the colour of its worst finding, with bars of measured shares."""

from collections.abc import Sequence
from html import escape

from ofipy.doctor.finding import Finding, State

__all__ = ["COLOURS", "draw_ladder", "worst_of"]

COLOURS = {
    State.OK: "#2e7d32",
    State.WARNING: "#b26a00",
    State.FAILED: "#c62828",
    State.UNJUDGED: "#5c6b7a",
    State.ABSENT: "#9aa5b1",
}
_ORDER = (State.FAILED, State.WARNING, State.OK, State.UNJUDGED, State.ABSENT)
_STEPS = ("process", "host", "link", "pcie", "reach", "raw", "provider", "congestion", "application")
_WIDTH, _RUNG, _TEXT, _BAR = 960, 36, 300, 180
_LONGEST = 88  # characters that fit beside a rung


def worst_of(findings: Sequence[Finding]) -> State:
    """The state that somebody has to look at first."""
    states = {each.state for each in findings}
    return next((state for state in _ORDER if state in states), State.ABSENT)


def draw_ladder(findings: Sequence[Finding]) -> str:
    """The picture as an element of SVG."""
    steps = [step for step in _STEPS if any(each.rule.step == step for each in findings)]
    height = _RUNG * len(steps) + 8
    parts = [
        f'<svg class="ladder" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        'aria-label="the ladder of checks">',
        f'<line x1="14" y1="4" x2="14" y2="{height - 4}" stroke="#9aa5b1" stroke-width="3"/>',
    ]
    for number, step in enumerate(steps):
        there = [each for each in findings if each.rule.step == step]
        parts += draw_rung(4 + number * _RUNG, step, there)
    return "\n".join([*parts, "</svg>"])


def draw_rung(top: int, step: str, findings: Sequence[Finding]) -> list[str]:
    """One step: its name, how many findings of each state, and what is worst."""
    state = worst_of(findings)
    counts = [(each, sum(one.state is each for one in findings)) for each in _ORDER]
    told = ", ".join(f"{count} {each}" for each, count in counts if count)
    middle = top + _RUNG // 2
    parts = [
        f'<circle cx="14" cy="{middle}" r="9" fill="{COLOURS[state]}"/>',
        f'<text x="34" y="{middle + 5}" font-weight="600">{escape(step)}</text>',
        f'<text x="130" y="{middle + 5}" fill="#5c6b7a">{escape(told)}</text>',
    ]
    worst = next(each for each in findings if each.state is state)
    share = next((each for each in findings if each.rule.unit.startswith("of ") and each.rule.is_least), None)
    if share is not None and share.measured is not None:
        parts += draw_bar(middle, share)
    elif worst.is_bad:
        text = f"{worst.place} {worst.text}".strip()
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        parts.append(f'<text x="{_TEXT}" y="{middle + 5}" fill="{COLOURS[state]}">{escape(text)}</text>')
    return parts


def draw_bar(middle: int, share: Finding) -> list[str]:
    """A measured share of what it could be, with a mark at its threshold."""
    measured = min(max(share.measured or 0.0, 0.0), 1.0)
    mark = min(max(share.threshold or 0.0, 0.0), 1.0)
    return [
        f'<rect x="{_TEXT}" y="{middle - 8}" width="{_BAR}" height="16" fill="#e6eaee"/>',
        f'<rect x="{_TEXT}" y="{middle - 8}" width="{_BAR * measured:.0f}" height="16" fill="{COLOURS[share.state]}"/>',
        f'<line x1="{_TEXT + _BAR * mark:.0f}" y1="{middle - 12}" x2="{_TEXT + _BAR * mark:.0f}" y2="{middle + 12}" '
        'stroke="#222" stroke-width="2"/>',
        f'<text x="{_TEXT + _BAR + 12}" y="{middle + 5}">{share.measured:.0%} {escape(share.rule.unit)}</text>',
    ]
