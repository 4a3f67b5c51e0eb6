# SPDX-License-Identifier: BSD-3-Clause
"""The subcommands of ``ofipy`` that monitor: ``exporter`` and ``top``."""

import rich_click as click

from ofipy.cli.support import JSON_LINES, ROOT, interval

__all__ = ["exporter", "top"]


@click.command()
@click.option("--once", is_flag=True, help="Print what a scrape gets, or write it with --textfile, and end.")
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where Prometheus may scrape; default without --textfile: 127.0.0.1:19228.",
)
@click.option(
    "--textfile",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Replace this file again and again, for node_exporter's textfile collector.",
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep sums in this file, so that none falls when the exporter starts again.",
)
@interval("Time between two looks at the processes.")
@click.option(
    "--peers",
    type=click.IntRange(0, 100),
    metavar="NUMBER",
    default=20,
    show_default=True,
    help="So many of the busiest peers have series of their own.",
)
@click.option(
    "--per-process",
    is_flag=True,
    help="Add series of each running process, with its pid and rank.",
)
@ROOT
def exporter(
    once: bool,
    listen: str | None,
    textfile: str | None,
    state: str | None,
    interval: float,
    peers: int,
    per_process: bool,
    root: str | None,
) -> None:
    """Tell Prometheus the counters of processes that use ofipy, of RDMA devices, and of TCP."""
    from ofipy.cli.exporter import run_exporter

    if once and listen is not None:
        raise click.UsageError("--once ends at once: give no --listen with it")
    if not once and listen is None and textfile is None:
        listen = "127.0.0.1:19228"
    run_exporter(
        once=once,
        listen=listen,
        textfile=textfile,
        state=state,
        interval=interval,
        peers=peers,
        per_process=per_process,
        root=root,
    )


@click.command()
@interval("Time over which rates are measured.", "-i")
@click.option(
    "-n",
    "--number",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="Print so many times, one below the other.",
)
@click.option(
    "--sort",
    type=click.Choice(("bytes", "messages", "errors", "pending", "unexpected", "name")),
    default="bytes",
    show_default=True,
    help="What rows are sorted by.",
)
@click.option(
    "--peers",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Show so many peers, the first ones of that order. Default: all.",
)
@JSON_LINES
def top(interval: float, number: int | None, sort: str, peers: int | None, as_json: bool) -> None:
    """Show what processes that use ofipy, their endpoints and peers, and RDMA ports do, until Ctrl-C."""
    from ofipy.cli.top import show_top
    from ofipy.host.tree import Tree
    from ofipy.statistics import Reader

    show_top(Reader(), Tree(), interval=interval, number=number, sort=sort, peers=peers, as_json=as_json)
