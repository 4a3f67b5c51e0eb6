# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy run``: the same program several times, as one job."""

import shutil
import sys
from collections.abc import Sequence

from ofipy.cli.support import CommandError, ExitCode
from ofipy.launch.placement import place
from ofipy.launch.run import run

__all__ = ["run_job"]


def run_job(
    command: Sequence[str],
    *,
    number: int | None,
    hosts: str | None,
    ssh: str,
    pin: bool,
    keep_going: bool = False,
) -> int:
    """Run the command; the parameters are its options as given.

    Raises
    ------
    CommandError
        When there is nothing to run, or no place for it.
    """
    if number is None and hosts is None:
        raise CommandError("say how many processes: -n NUMBER, or --hosts", code=ExitCode.USAGE)
    program = command[0]
    whole = [sys.executable, *command] if program.endswith(".py") else list(command)
    if shutil.which(whole[0]) is None:
        raise CommandError(f"{program}: there is no such program", code=ExitCode.USAGE)
    try:
        places = place(number, hosts)
        return run(places, whole, ssh=ssh, pin=pin, keep_going=keep_going)
    except ValueError as error:
        raise CommandError(str(error), code=ExitCode.USAGE) from None
