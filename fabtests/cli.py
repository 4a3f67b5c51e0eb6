# SPDX-License-Identifier: BSD-3-Clause
"""The ``fabtests`` command: one subcommand a program, each imported when it runs."""

import rich_click as click

from fabtests.base.options import Options, common_options
from ofipy.cli.support import deadline, run_command

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ofipy", prog_name="fabtests")
def fabtests() -> None:
    """Tests and benchmarks of ofipy, named after libfabric's."""


@fabtests.command("rdm_tagged_pingpong")
@common_options
def rdm_tagged_pingpong(options: Options) -> None:
    """Ping-pong of tagged messages: server without HOST, client with one."""
    from fabtests.rdm_tagged_pingpong import run

    with deadline(options.timeout):
        run(options)


@fabtests.command()
@click.option("--case", "cases", metavar="NAME[,NAME]", help="Cases to run; default: all.")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=15, show_default=True, help="Rounds of each row."
)
@click.option("--mode", "modes", metavar="NAME[,NAME]", help="Only rows of these modes.")
@click.option(
    "--bytes", "sizes", metavar="NUMBER[,NUMBER]", help="Only rows of these sizes (depths in match-depth)."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def compare(cases: str | None, rounds: int, modes: str | None, sizes: str | None, as_json: bool) -> None:
    """Measure ofipy against the peers that are installed, round by round in turn."""
    from fabtests.compare.command import run

    run(cases=cases, rounds=rounds, modes=modes, sizes=sizes, as_json=as_json)


def main() -> int:
    """Run the command line.

    Returns
    -------
    int
        The exit code, see :mod:`ofipy.cli.support`.
    """
    return run_command(fabtests, "fabtests")
