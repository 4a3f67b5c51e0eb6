# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``ofipy trace``, and their options."""

from pathlib import Path

import rich_click as click

__all__ = ["trace"]


@click.group()
def trace() -> None:
    """Process files that the hook trace has written."""


@trace.command()
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False)
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the merged trace.",
)
def merge(files: tuple[Path, ...], output: Path) -> None:
    """Merge the traces of several processes into one, with arrows between the processes."""
    from ofipy.cli.trace import merge_files

    merge_files(files, output)
