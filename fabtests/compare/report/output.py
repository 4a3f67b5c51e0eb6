# SPDX-License-Identifier: BSD-3-Clause
"""What the options of ``fabtests compare`` ask for beside its tables."""

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from fabtests.base.extras import remedy_for_extra
from fabtests.compare.report.against import Change, compare_documents
from fabtests.compare.report.charts import charts_of
from fabtests.compare.tables import UNITS, show_number
from ofipy.cli.support import CommandError, ExitCode, data_console, status_console
from ofipy.cli.tables import print_table

__all__ = ["Output"]


@dataclass(frozen=True, slots=True)
class Output:
    """Where a result goes.

    Raises
    ------
    CommandError
        When a library that draws is not installed, or the earlier result cannot be read: before anything is measured.
    """

    html: Path | None = None
    """A page."""
    figures: Path | None = None
    """A folder of PNG and SVG files."""
    plot: bool = False
    """Charts in the terminal."""
    against: Path | None = None
    """An earlier result."""

    def __post_init__(self) -> None:
        needed = {"matplotlib": self.html or self.figures, "jinja2": self.html, "plotext": self.plot}
        for name, wanted in needed.items():
            if wanted and importlib.util.find_spec(name) is None:
                raise CommandError(
                    f"{name} is not installed, which this needs: {remedy_for_extra('report')}",
                    code=ExitCode.USAGE,
                )
        if self.against is not None:
            self._read_earlier(self.against)

    def write(self, document: dict[str, Any], *, quietly: bool) -> list[Change]:
        """Write and print all that was asked for.

        Parameters
        ----------
        document : dict
            Of this run.
        quietly : bool
            Standard output is taken: tables and charts go to standard error.

        Returns
        -------
        list of Change
            Against the earlier result.
        """
        console = status_console() if quietly else data_console()
        changes: list[Change] = []
        if self.against is not None:
            changes = self._compare(self.against, document)
            print_table(console, build_changes(changes))
        if self.plot:
            from fabtests.compare.report.terminal import plot

            click.echo(
                plot(charts_of(document), width=console.width, colours=console.is_terminal),
                err=quietly,
                nl=False,
            )
        try:
            self._write_files(document, changes, console)
        except OSError as error:
            raise CommandError(f"cannot write {error.filename}: {error.strerror}") from error
        return changes

    def _write_files(self, document: dict[str, Any], changes: list[Change], console: Console) -> None:
        if self.figures is not None:
            from fabtests.compare.report.figures import write_figures

            written = write_figures(charts_of(document), self.figures)
            console.print(f"{len(written)} files in {self.figures}")
        if self.html is not None:
            from fabtests.compare.report.page import build_page

            self.html.write_text(build_page(document, changes), encoding="utf-8")
            console.print(f"Report: {self.html}")

    @staticmethod
    def _read_earlier(path: Path) -> dict[str, Any]:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot read {path}: {error}", code=ExitCode.USAGE) from error
        if not isinstance(document, dict):
            raise CommandError(f"{path} is not a result of fabtests compare", code=ExitCode.USAGE)
        return document

    def _compare(self, path: Path, document: dict[str, Any]) -> list[Change]:
        try:
            return compare_documents(self._read_earlier(path), document)
        except (ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{path}: {error}", code=ExitCode.USAGE) from error


def build_changes(changes: list[Change]) -> Table:
    """The table of what has become of each row."""
    table = Table(title="against the earlier result, times as slow as then", title_justify="left")
    table.add_column("row", no_wrap=True)
    for heading in ("then", "now", "unit", "machine", "ofipy", "noise"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for change in sorted(changes, key=lambda each: -each.slowdown):
        verdict = "slower" if change.is_regression else "faster" if change.is_gain else "as it was"
        figures = f"{change.machine:.2f}", f"{change.slowdown:.2f}", f"{change.noise:.0%}"
        table.add_row(
            change.name,
            show_number(change.then),
            show_number(change.now),
            UNITS[change.unit],
            *figures,
            verdict,
        )
    return table
