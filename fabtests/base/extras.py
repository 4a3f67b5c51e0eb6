# SPDX-License-Identifier: BSD-3-Clause
"""What errors say where a package is missing that an extra of ofipy brings."""

__all__ = ["remedy_for_extra"]


def remedy_for_extra(extra: str) -> str:
    """Return the command that installs an extra; no package index has ofipy, so it needs a checkout."""
    return f"pip install '.[{extra}]' in a checkout of ofipy"
