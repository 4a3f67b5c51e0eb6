# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the C suite for what ofipy does not have: they say so, and count as not run."""

import errno

from fabtests.base.cases import Bench
from fabtests.base.program import NotRun, Program

__all__ = ["absent"]


def absent(summary: str, reason: str, *, code: int = errno.ENOSYS) -> Program:
    """A program that ends as not run.

    Parameters
    ----------
    summary : str
        What the C program does.
    reason : str
        What is missing.
    code : int
        Exit code: ``ENOSYS`` for what ofipy lacks, ``ENODATA`` for what its providers lack.
    """

    def cases(_bench: Bench) -> None:
        raise NotRun(reason, code=code)

    return Program(summary=summary, cases=cases)
