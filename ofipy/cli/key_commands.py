# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``ofipy key``, and their options."""

from pathlib import Path

import rich_click as click

from ofipy.cli.support import JSON

__all__ = ["key"]


@click.group()
def key() -> None:
    """Make and show keys that peers prove to each other (OFIPY_AUTH_KEY_FILE)."""


@key.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def new(file: Path) -> None:
    """Write a random key to FILE, which only you can read. FILE must not exist yet."""
    from ofipy.cli.key import new_key

    new_key(file)


@key.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--tls", is_flag=True, required=True, help="Show the pre-shared key of TLS, and its name.")
@JSON
def show(file: Path, tls: bool, as_json: bool) -> None:
    """Show what endpoints derive from the key in FILE. Keep the output as secret as the key."""
    from ofipy.cli.key import show_tls_key

    show_tls_key(file, as_json=as_json)
