# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor``: what on this host helps or hinders, a line each."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from ofipy.cli.checks import Check, State, examine
from ofipy.cli.support import CommandError, data_console, print_json
from ofipy.cli.tables import WRAPPED_WIDTH, print_table

__all__ = ["show_checks"]

SCHEMA = 1
STYLES = {State.OK: "green", State.WARNING: "yellow", State.FAILED: "red"}


def show_checks(*, as_json: bool) -> None:
    """Print every check.

    Parameters
    ----------
    as_json : bool
        One document in place of a table.

    Raises
    ------
    CommandError
        After printing, when one has failed. Warnings are no failure.
    """
    checks = examine()
    if as_json:
        print_json({"schema": SCHEMA, "checks": [asdict(each) for each in checks]})
    else:
        show_table(checks)
    failed = [each.name for each in checks if each.state is State.FAILED]
    if failed:
        raise CommandError(f"to be mended: {', '.join(failed)}")


def show_table(checks: Sequence[Check]) -> None:
    """A row for each."""
    table = Table()
    table.add_column("check", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what is there", min_width=WRAPPED_WIDTH)
    table.add_column("what to do", min_width=WRAPPED_WIDTH)
    for each in checks:
        table.add_row(each.name, Text(each.state, STYLES[each.state]), each.finding, each.remedy)
    print_table(data_console(), table)
