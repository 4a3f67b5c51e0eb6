# SPDX-License-Identifier: BSD-3-Clause
"""Tables that stay readable on a narrow terminal, where each row becomes a few lines of its own."""

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

__all__ = ["WRAPPED_WIDTH", "drop_columns", "print_table"]

UNLIMITED = 10_000
WRAPPED_WIDTH = 18
"""What a column of running text has at least; more where a word of it is longer."""


def print_table(console: Console, *layouts: Table) -> None:
    """Print the first of these tables that fits without cutting a word; if none does, the last one row by row.

    Columns of running text have a `min_width` of :data:`WRAPPED_WIDTH`; no other column is wrapped.

    Parameters
    ----------
    console : Console
        Where to.
    *layouts : Table
        The same in several layouts, the widest first.
    """
    for table in layouts:
        if needed_width(console, table) <= console.width:
            console.print(table)
            return
    print_rows(console, layouts[-1])


def drop_columns(console: Console, table: Table, dispensable: Sequence[str]) -> None:
    """Take columns out of a table until it fits without cutting a word.

    Parameters
    ----------
    console : Console
        Where it is to be printed.
    table : Table
        The table.
    dispensable : sequence of str
        Headings, in the order in which their columns go.
    """
    for heading in dispensable:
        if needed_width(console, table) <= console.width:
            return
        table.columns = [column for column in table.columns if column.header != heading]


def needed_width(console: Console, table: Table) -> int:
    """The least width at which no word is cut: columns of running text at their least, the others in full."""
    running = [column for column in table.columns if column.min_width]
    for column in running:
        if column.overflow != "fold":
            column.min_width = max(column.min_width or 0, *map(longest_word, column.cells), 0)
        column.width = column.min_width
    measured = Measurement.get(console, console.options.update(max_width=UNLIMITED), table).maximum
    for column in running:
        column.width = None
    return measured


def longest_word(cell: object) -> int:
    """Its length; 0: it is no text."""
    return max(map(len, str(cell).split()), default=0) if isinstance(cell, str | Text) else 0


def print_rows(console: Console, table: Table) -> None:
    """Print each row as its first cell, and below it the others with their headings, as far as there is something."""
    if table.title:
        console.print(table.title, style="italic")
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        first, *rest = cells
        if str(first):
            console.print(first, style="bold")
        lines = Table.grid(Column(no_wrap=True), Column(overflow="fold"), padding=(0, 2, 0, 0))
        for column, cell in zip(table.columns[1:], rest, strict=True):
            if str(cell) not in ("", "-"):
                lines.add_row(label(column), cell)
        console.print(Padding(lines, (0, 0, 0, 2), expand=False))


def label(column: Column) -> Text:
    """The heading of a column on one line, without what explains it."""
    return Text(" ".join(str(column.header).partition(",")[0].split()))
