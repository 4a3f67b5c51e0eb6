# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy version``: what a bug report needs first."""

import platform
from importlib.metadata import version
from typing import Any

import click

import ofipy
from ofipy import ProviderUnavailable
from ofipy._discovery.providers import load, ordered_names
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
        "providers": [describe(name) for name in ordered_names()],
    }
    if as_json:
        print_json(document)
        return
    for name, value in document.items():
        if name not in ("schema", "providers"):
            click.echo(f"{name:8} {value}")
    for each in document["providers"]:
        click.echo(f"{each['name']:8} {each['version'] or each['reason']} (provider)")


def describe(name: str) -> dict[str, str | None]:
    """A provider's own version, or why it cannot be loaded. What it finds here is `ofipy info`'s to say."""
    try:
        return {"name": name, "version": load(name).version, "reason": None}
    except ProviderUnavailable as error:
        return {"name": name, "version": None, "reason": error.message}
