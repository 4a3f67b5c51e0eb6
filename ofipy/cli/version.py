# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy version``: what a bug report needs first."""

import platform
from importlib.metadata import version
from typing import Any

import click

import ofipy
from ofipy.cli.support import print_json

__all__ = ["show_version"]

SCHEMA = 1


def show_version(*, as_json: bool) -> None:
    """Print versions, one a line or as a document."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "ofipy": ofipy.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "cffi": version("cffi"),
        "kernel": platform.release(),
        "machine": platform.machine(),
    }
    if as_json:
        print_json(document)
        return
    for name, value in document.items():
        if name != "schema":
            click.echo(f"{name:8} {value}")
