# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of this process, as checks ask for them."""

import ofipy

__all__ = ["parameter"]


def parameter(name: str) -> str:
    """The value in force; empty where nobody has set one."""
    return next((each.value for each in ofipy.parameters() if each.name == name), "")
