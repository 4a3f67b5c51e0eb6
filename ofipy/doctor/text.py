# SPDX-License-Identifier: BSD-3-Clause
"""Findings as a table."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ofipy.cli.tables import WRAPPED_WIDTH, print_table
from ofipy.doctor.finding import Finding, State

__all__ = ["print_findings"]

_STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "red"}


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Print a row for each; a column for their places if they have any."""
    placed = any(each.place for each in findings)
    table = Table()
    table.add_column("check", no_wrap=True)
    if placed:
        table.add_column("where", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what is there", min_width=WRAPPED_WIDTH)
    table.add_column("what to do", min_width=WRAPPED_WIDTH)
    for each in findings:
        state = Text(each.state, _STYLES.get(each.state, ""))
        where = (each.place or "-",) if placed else ()
        table.add_row(each.rule.name, *where, state, each.text, each.remedy)
    print_table(console, table)
