# SPDX-License-Identifier: BSD-3-Clause
"""The ``ofipy`` command line. Nothing of it is imported by ``import ofipy``."""

__all__ = ["main"]


def main() -> int:
    """Run the ``ofipy`` command.

    Returns
    -------
    int
        The exit code, see :mod:`ofipy.cli.support`.
    """
    from ofipy.cli.commands import ofipy_command
    from ofipy.cli.support import run_command

    return run_command(ofipy_command, "ofipy")
