# SPDX-License-Identifier: BSD-3-Clause
"""Starts programs and has each time a part of its start; runs in one worker."""

import subprocess
import sys
from importlib.metadata import version

__all__ = ["Starter"]

# What is timed, and what comes before it.
PARTS = {
    "numpy": ("", "import numpy"),
    "import": ("", "import ofipy"),
    "open": ("import ofipy", "endpoint = ofipy.open()"),
}
PROGRAM = """
{before}
from time import perf_counter_ns
begin = perf_counter_ns()
{timed}
print(perf_counter_ns() - begin)
"""


class Starter:
    """Starts one after the other."""

    def __init__(self, first: bool) -> None:
        self._first = first

    def version(self) -> str:
        """Of ofipy."""
        return version("ofipy")

    def measure(self, part: str) -> int:
        """Nanoseconds of that part in a new process."""
        before, timed = PARTS[part]
        program = PROGRAM.format(before=before, timed=timed)
        done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True)
        return int(done.stdout)

    def close(self) -> None:
        """Nothing is held."""
