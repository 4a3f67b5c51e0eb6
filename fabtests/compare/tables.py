# SPDX-License-Identifier: BSD-3-Clause
"""The result as one JSON document, or as tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from fabtests.compare.bars import BEST, Bar
from fabtests.compare.runner import Best, PeerResult, Row
from fabtests.compare.statistics import EVEN, SPREAD_LIMIT, Summary
from ofipy.cli.tables import WRAPPED_WIDTH, print_table
from ofipy.pingpong.sizes import shorten_bytes

__all__ = [
    "SCHEMA",
    "UNITS",
    "build_document",
    "print_tables",
    "show_mode",
    "show_number",
    "show_quotient",
    "show_size",
    "show_units",
]

SCHEMA = 1
UNITS = {
    "usec_per_transfer": "µs",
    "usec": "µs",
    "mb_per_sec": "MB/s",
    "messages_per_sec": "messages/s",
    "tasks_per_sec": "tasks/s",
}


def build_document(rows: Sequence[Row], *, machine: dict[str, Any], absent: dict[str, str]) -> dict[str, Any]:
    """The document of ``--json`` of one run."""
    return {
        "schema": SCHEMA,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "rows": [row.document() for row in rows],
        "absent": absent,
    }


def print_tables(
    console: Console, rows: Sequence[Row], *, machine: dict[str, Any], absent: dict[str, str]
) -> None:
    """Print a table for each case, then the machine and who was missing."""
    for name in dict.fromkeys(row.case.name for row in rows):
        chosen = [row for row in rows if row.case.name == name]
        print_table(console, build_table(chosen), build_long_table(chosen))
    console.print(
        "Medians over rounds, ± spread (interquartile range / median); (×) is ofipy / peer, "
        f"given when no spread is above {SPREAD_LIMIT:.0%}. Beside the best peer ofipy is even where they differ by no "
        f"more than {EVEN:.0%}."
    )
    if "processor" in machine:
        console.print(f"Processor: {machine['processor']}")
    shown = {key: value for key, value in machine.items() if key != "processor" and value not in (None, [])}
    facts = ", ".join(f"{key} {value}" for key, value in shown.items())
    console.print(f"Machine: {facts}")
    for peer, reason in absent.items():
        console.print(f"Absent: {peer}: {reason}")


def build_table(rows: Sequence[Row]) -> Table:
    """The table of one case."""
    case = rows[0].case
    peers = list(dict.fromkeys(name for row in rows for name in row.peers))
    table = Table(title=f"{case.name} ({show_units(rows)})", title_justify="left")
    table.add_column("mode")
    for heading in (case.size_key, "ofipy", "p99", *peers):
        table.add_column(heading, justify="right")
    table.add_column("best peer")
    table.add_column("bar")
    for row in rows:
        beside = [show_peer(row.peers.get(name)) for name in peers]
        table.add_row(
            show_mode(row),
            show_size(row),
            show_summary(row.own) + show_facts(row.facts),
            show_number(row.own.p99),
            *beside,
            show_best(row.best()),
            show_bars(row),
        )
    return table


def build_long_table(rows: Sequence[Row]) -> Table:
    """The table of one case for a narrow terminal: a line for each contender, below a line with mode and size."""
    case = rows[0].case
    results: list[PeerResult | Row] = [*rows, *(peer for row in rows for peer in row.peers.values())]
    facts = list(dict.fromkeys(key for result in results for key in result.facts))
    has_tail = any(summary_of(result).p99 is not None for result in results)
    table = Table(title=f"{case.name} ({show_units(rows)})", title_justify="left", box=None, pad_edge=False)
    table.add_column(f"mode, {case.size_key}", no_wrap=True)
    for heading in ("value", *facts, *(["p99"] if has_tail else []), "×"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("bar", min_width=WRAPPED_WIDTH)
    for row in rows:
        verdicts = place_verdicts(row)
        table.add_row(f"{show_mode(row)}, {show_size(row)}")
        beside: list[tuple[str, PeerResult | Row]] = [("ofipy", row), *row.peers.items()]
        for name, result in beside:
            summary = summary_of(result)
            table.add_row(
                f"  {name}",
                show_summary(summary),
                *(str(result.facts.get(key, "-")) for key in facts),
                *([show_number(summary.p99)] if has_tail else []),
                show_ratio(result) if isinstance(result, PeerResult) else "",
                verdicts.get(None if result is row else name, ""),
            )
        if (best := row.best()) is not None:
            blanks = [""] * (1 + len(facts) + has_tail)
            table.add_row(f"  best: {best.peer}", *blanks, show_quotient(best.ratio), verdicts[BEST])
    return table


def place_verdicts(row: Row) -> dict[str | None, str]:
    """What the long table says of bars, by the line: of a peer, of the best peer, or None for that of ofipy."""
    best = row.best()
    verdicts: dict[str | None, list[str]] = {}
    if best is not None:
        verdicts[BEST] = [best.verdict or "not judged"]
    for bar, met in row.bars():
        peer = row.peer_of(bar)
        line = BEST if bar.among and best is not None and peer == best.peer else peer
        verdicts.setdefault(line, []).append(show_verdict(bar, met))
    return {line: ", ".join(words) for line, words in verdicts.items()}


def summary_of(result: PeerResult | Row) -> Summary:
    """The figures of ofipy in a row, or of a peer beside it."""
    return result.own if isinstance(result, Row) else result.summary


def show_units(rows: Sequence[Row]) -> str:
    """Unit of the values; several where modes differ."""
    modes: dict[str, list[str]] = {}
    for row in rows:
        modes.setdefault(UNITS[row.case.metric_of(row.line.mode)], []).append(row.line.mode)
    if len(modes) == 1:
        return next(iter(modes))
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {unit}" for unit, names in modes.items())


def show_mode(row: Row) -> str:
    """The mode, and the way of cases that have several."""
    return f"{row.line.mode} by {row.line.way}" if row.line.way else row.line.mode


def show_size(row: Row) -> str:
    """Bytes in short, or a depth."""
    return shorten_bytes(row.line.size) if row.case.size_key == "bytes" else str(row.line.size)


def show_number(value: float | None) -> str:
    """Three significant digits, whole numbers from 100 on."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def show_summary(summary: Summary) -> str:
    """A value and its spread."""
    return f"{show_number(summary.value)} ±{summary.spread:.0%}"


def show_ratio(peer: PeerResult) -> str:
    """How ofipy stands to a peer."""
    return show_quotient(peer.ratio)


def show_quotient(quotient: float | None) -> str:
    """Ofipy divided by a peer."""
    return "?" if quotient is None else f"{quotient:.3g}"


def show_best(best: Best | None) -> str:
    """The best peer, and how ofipy stands to it."""
    if best is None:
        return "-"
    return f"{best.peer} (×{show_quotient(best.ratio)}) {best.verdict or 'not judged'}"


def show_facts(facts: Mapping[str, Any]) -> str:
    """What else was found."""
    return "".join(f" {key} {value}" for key, value in facts.items())


def show_peer(peer: PeerResult | None) -> str:
    """A peer's value, tail and ratio."""
    if peer is None:
        return "-"
    tail = "" if peer.summary.p99 is None else f" p99 {show_number(peer.summary.p99)}"
    return f"{show_summary(peer.summary)}{tail}{show_facts(peer.facts)} (×{show_ratio(peer)})"


def show_verdict(bar: Bar, met: bool | None) -> str:
    """A bar, and whether it is met."""
    words = {True: "met", False: "missed", None: "not judged"}
    return f"{bar} {words[met]}"


def show_bars(row: Row) -> str:
    """The bars of a row."""
    return ", ".join(show_verdict(bar, met) for bar, met in row.bars())
