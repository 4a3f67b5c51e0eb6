# SPDX-License-Identifier: BSD-3-Clause
"""Findings as a table."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ofipy.cli.tables import WRAPPED_WIDTH, print_table
from ofipy.doctor.finding import Finding, State

__all__ = ["print_findings"]

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "red"}
_SHOWN = 3  # places of one rule that are in order; more are counted


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print a row for each that is judged; a column for their places if they have any."""
    shown = [each for each in findings if each.state is not State.ABSENT]
    placed = any(each.place for each in shown)
    table = Table()
    table.add_column("check", no_wrap=True)
    if placed:
        table.add_column("where", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what is there", min_width=WRAPPED_WIDTH)
    table.add_column("what to do", min_width=WRAPPED_WIDTH)
    for name, place, state, text, remedy in build_rows(shown):
        where = (place or "-",) if placed else ()
        table.add_row(name, *where, Text(state, _STYLES.get(state, "")), text, remedy)
    print_table(console, table)


def build_rows(findings: Sequence[Finding]) -> Iterable[tuple[str, str, State, str, str]]:
    """The cells. Many places of one rule that are all in order share a row."""
    for (name, state), group in groupby(findings, key=lambda each: (each.rule.name, each.state)):
        several = list(group)
        if state is State.OK and len(several) > _SHOWN:
            yield (
                name,
                f"{len(several)} places",
                state,
                f"{several[0].place}: {several[0].text}; others likewise",
                "",
            )
            continue
        for each in several:
            yield name, each.place, state, each.text, each.remedy
