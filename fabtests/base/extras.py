# SPDX-License-Identifier: BSD-3-Clause
"""What errors say where packages are missing; no package index has ofipy, so it is installed from a checkout."""

__all__ = ["remedy_for_extra", "remedy_from_checkout"]


def remedy_for_extra(extra: str) -> str:
    """Return the command that installs ofipy with an extra."""
    return remedy_from_checkout(f"'.[{extra}]'")


def remedy_from_checkout(packages: str) -> str:
    """Return the command that installs these packages; ``.`` among them is ofipy."""
    return f"pip install {packages} in a checkout of ofipy"
