# SPDX-License-Identifier: BSD-3-Clause
"""Programs of several processes: the job that they are, started here where no launcher did it."""

import errno
import subprocess
import sys

from fabtests.base.program import Failed, NotRun

__all__ = ["start_job"]


def start_job(number: int) -> None:
    """Run this command line as a job of `number` processes of this host, to its end.

    Raises
    ------
    NotRun
        When its processes say so.
    Failed
        When one of them failed.
    """
    program = [sys.executable, "-P", "-m"]
    command = [*program, "ofipy", "run", "-n", str(number), *program, "fabtests", *sys.argv[1:]]
    code = subprocess.run(command, check=False).returncode
    if code in (errno.ENODATA, errno.ENOSYS):
        raise NotRun("see above", code=code)
    if code:
        raise Failed(f"a process of the job ended with {code}")
