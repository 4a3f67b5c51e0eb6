# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy version``: what a bug report needs first."""

import platform
from importlib.metadata import distribution, version
from typing import Any

import click

import ofipy
from ofipy import ProviderUnavailable, _build
from ofipy._discovery.providers import load, ordered_names
from ofipy.cli.support import print_json

__all__ = ["show_version"]

SCHEMA = 1


def show_version(*, as_json: bool) -> None:
    """Print versions, one a line or as a document."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "ofipy": ofipy.__version__,
        "commit": _build.COMMIT,
        "wheel": wheel_tag(),
        "compiler": _build.COMPILER,
        "provider_abi": ".".join(map(str, ofipy.PROVIDER_ABI)),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "cffi": version("cffi"),
        "libc": libc(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "providers": [describe(name) for name in ordered_names()],
    }
    if as_json:
        print_json(document)
        return
    for name, value in document.items():
        if name not in ("schema", "providers"):
            click.echo(f"{name:12} {value}")
    for each in document["providers"]:
        click.echo(f"{each['name']:12} {each['version'] or each['reason']} (provider)")


def wheel_tag() -> str | None:
    """Which wheel is installed: its tag says the oldest C library; None: it has no such tag."""
    lines = (distribution("ofipy").read_text("WHEEL") or "").splitlines()
    return next((line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")), None)


def libc() -> str:
    """The C library of this process, with its version as far as that is known."""
    name, number = platform.libc_ver()
    return f"{name or 'musl'} {number}".strip()


def describe(name: str) -> dict[str, str | None]:
    """A provider's own version, or why it cannot be loaded. What it finds here is `ofipy info`'s to say."""
    try:
        return {"name": name, "version": load(name).version, "reason": None}
    except ProviderUnavailable as error:
        return {"name": name, "version": None, "reason": error.message}
