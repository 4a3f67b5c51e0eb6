# SPDX-License-Identifier: BSD-3-Clause
"""Commands of ``ofipy``, run within the process of a test, and the environment of other programs."""

import inspect
import os
from typing import Any

from click.testing import CliRunner, Result

from ofipy.cli.commands import ofipy_command

# click before 8.2 mixes standard error into the output unless it is told not to.
_APART: dict[str, Any] = (
    {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
)


def invoke(*words: str, **options: Any) -> Result:
    """Run a command: how it ended, and what it wrote to standard output and to standard error."""
    return CliRunner(**_APART).invoke(ofipy_command, words, **options)


def environment_without_coverage() -> dict[str, str]:
    """For a program that coverage's tracer would change: it needs memory, and imports modules."""
    return {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
