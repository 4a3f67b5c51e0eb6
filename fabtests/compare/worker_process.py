# SPDX-License-Identifier: BSD-3-Clause
"""A worker of an executor as a child of the second side, on whose core it runs."""

import subprocess
import sys

__all__ = ["WorkerProcess"]

_SECONDS = 10.0


class WorkerProcess:
    """A module of Python that serves until its executor ends.

    Parameters
    ----------
    *arguments : str
        The module and its arguments.
    """

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """End it, unless it has ended with its executor."""
        self._process.terminate()
        try:
            self._process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
