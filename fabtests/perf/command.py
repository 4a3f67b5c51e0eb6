# SPDX-License-Identifier: BSD-3-Clause
"""A program of ``fabtests perf`` as a command of the command line."""

from typing import Any

import rich_click as click

from fabtests.base.channel import listen
from fabtests.perf.kinds import Kind
from fabtests.perf.options import OPTIONS, make_plan
from fabtests.perf.parties import client, local, server
from ofipy.cli.support import deadline

__all__ = ["command_of"]


def command_of(name: str, kind: Kind) -> click.Command:
    """Make the command of a program."""

    def run(host: str | None, port: int, timeout: float | None, bind: str | None, **given: Any) -> None:
        plan, output = make_plan(name, kind, {"host": host, "bind": bind, **given})
        if output.json_file is not None:
            output.json_file.open("a").close()  # what cannot be written is better told before
        with deadline(timeout):
            if given["local"]:
                local(plan, output)
            elif host is None:
                server(listen(port, bind), plan)
            else:
                client(host, port, plan, output)

    decorated: Any = run
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return click.command(name, help=kind.summary, context_settings={"help_option_names": ["-h", "--help"]})(
        decorated
    )
