# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy top``: what processes, endpoints, peers and ports do, again and again."""

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ofipy.cli.support import data_console
from ofipy.cli.tables import drop_columns, print_table
from ofipy.host.tree import Tree
from ofipy.statistics.scanner import Scanner
from ofipy.top.rates import EndpointRow, PeerRow, PortRow, ProcessRow, Rates, Screen, find_rates
from ofipy.top.sample import take_sample

__all__ = ["describe", "fill_terminal", "share_lines", "show_top"]

SCHEMA = 1
_RATES = ("sends/s", "receives/s", "remote/s", "sent", "received", "errors/s")
# Columns that a narrow terminal does without, in the order in which they go.
_DISPENSABLE = (
    "job",
    "remote/s",
    "rank",
    "eps",
    "provider",
    "way",
    "protocol",
    "waits/s",
    "errors/s",
    "rate",
)
_HEADING = 2  # lines of a table beside its rows: title and names of columns
_FEWEST_ROWS = 2


def show_top(
    scanner: Scanner,
    tree: Tree,
    *,
    interval: float,
    number: int | None,
    sort: str,
    peers: int | None = None,
    as_json: bool,
) -> None:
    """Show rates until Ctrl-C, or so many times.

    Parameters
    ----------
    scanner : Scanner
        The processes.
    tree : Tree
        The host, for its ports.
    interval : float
        Seconds over which rates are measured.
    number : int, optional
        Print so many times; None: until Ctrl-C, on a terminal in place.
    sort : str
        What rows are sorted by.
    peers : int, optional
        Peers, at most: the first ones of that order.
    as_json : bool
        One document a line.
    """
    screens = measure(scanner, tree, interval, sort, peers)
    chosen = screens if number is None else itertools.islice(screens, number)
    if as_json:
        for screen in chosen:
            click.echo(json.dumps(describe(screen)))
    elif number is None and sys.stdout.isatty():
        show_in_place(chosen)
    else:
        for screen in chosen:
            print_screen(data_console(), screen)


def measure(scanner: Scanner, tree: Tree, interval: float, sort: str, peers: int | None) -> Iterator[Screen]:
    """Rates of one interval after the other."""
    before = take_sample(scanner, tree)
    while True:
        time.sleep(interval)
        now = take_sample(scanner, tree)
        yield find_rates(before, now, sort, peers)
        before = now


def show_in_place(screens: Iterator[Screen]) -> None:
    """Fill the terminal, and again with what follows. What does not fit is left out, the last rows first."""
    console = data_console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for screen in screens:
            live.update(fill_terminal(console, screen), refresh=True)


def fill_terminal(console: Console, screen: Screen) -> Group:
    """What fits into the terminal as it is now."""
    tables = build_tables(screen, share_lines(screen, console.height - 1))
    for table in tables:
        table.box = None
        drop_columns(console, table, _DISPENSABLE)
    return Group(summarize(screen), *tables)


def share_lines(screen: Screen, height: int) -> list[int]:
    """How many rows each table may have: as many as it has, or less where the terminal ends."""
    wanted = [len(rows) for rows in (screen.processes, screen.endpoints, screen.peers, screen.ports)]
    left = height - sum(_HEADING for rows in wanted if rows)
    while sum(wanted) > left and max(wanted) > _FEWEST_ROWS:
        wanted[wanted.index(max(wanted))] -= 1
    return wanted


def print_screen(console: Console, screen: Screen) -> None:
    """Print everything."""
    console.print(summarize(screen))
    for table in build_tables(screen):
        print_table(console, table)


def summarize(screen: Screen) -> Text:
    """The first line."""
    text = f"{len(screen.processes)} processes, {len(screen.endpoints)} endpoints, rates of {screen.seconds:.3g} s"
    if screen.unreadable:
        text += f"; {screen.unreadable} processes of others cannot be read"
    return Text(text)


def build_tables(screen: Screen, limits: Sequence[int] | None = None) -> list[Table]:
    """A table for each of processes, endpoints, peers and ports that there are.

    Parameters
    ----------
    screen : Screen
        What is shown.
    limits : sequence of int, optional
        Rows of each of the four; None: all.
    """
    most = limits if limits is not None else (sys.maxsize,) * 4
    tables = (
        build_processes(screen.processes[: most[0]]),
        build_endpoints(screen.endpoints[: most[1]]),
        build_peers(screen.peers[: most[2]]),
        build_ports(screen.ports[: most[3]]),
    )
    return [table for table in tables if table.row_count]


def build_processes(rows: Sequence[ProcessRow]) -> Table:
    """The table of processes."""
    table = new_table("processes", "pid", "program", "job", "rank", "eps", *_RATES, "pending", "unexpected")
    for row in rows:
        rank = "-" if row.rank is None else str(row.rank)
        names = (str(row.pid), plain(row.program), plain(row.job), rank, str(row.endpoints))
        table.add_row(*names, *rate_cells(row.rates), str(row.pending), str(row.unexpected))
    return table


def build_endpoints(rows: Sequence[EndpointRow]) -> Table:
    """The table of endpoints."""
    headings = ("pid", "ep", "address", "provider", "protocol")
    table = new_table("endpoints", *headings, *_RATES, "pending", "unexpected")
    for row in rows:
        names = (str(row.pid), str(row.number), *map(plain, (row.name, row.provider, row.protocol)))
        table.add_row(*names, *rate_cells(row.rates), str(row.pending), str(row.unexpected))
    return table


def build_peers(rows: Sequence[PeerRow]) -> Table:
    """The table of peers."""
    headings = ("pid", "ep", "peer", "way", "sends/s", "receives/s", "sent", "received", "errors/s")
    table = new_table("peers", *headings)
    for row in rows:
        names = (str(row.pid), str(row.endpoint), plain(row.address), plain(row.way))
        moved = (say_bytes(row.bytes_sent), say_bytes(row.bytes_received))
        table.add_row(*names, say(row.sends), say(row.receives), *moved, say_error(row.errors))
    return table


def build_ports(rows: Sequence[PortRow]) -> Table:
    """The table of ports."""
    table = new_table(
        "ports", "port", "state", "rate", "sent", "received", "errors/s", "retries/s", "waits/s"
    )
    for row in rows:
        names = (f"{row.device}/{row.port}", plain(row.state), plain(row.rate))
        moved = (say_bytes(row.bytes_sent), say_bytes(row.bytes_received))
        table.add_row(*names, *moved, say_error(row.errors), say_error(row.retries), say(row.congestion))
    return table


def new_table(title: str, *headings: str) -> Table:
    """A table without rows; numbers stand at the right."""
    table = Table(title=title, title_justify="left")
    texts = ("program", "job", "address", "provider", "protocol", "peer", "way", "port", "state", "rate")
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="left" if heading in texts else "right")
    return table


def plain(text: str | None) -> str:
    """A text of another process, which steers no terminal."""
    return "".join(each if each.isprintable() else "?" for each in text or "-")


def rate_cells(rates: Rates) -> tuple[str | Text, ...]:
    """The cells of rates."""
    operations = (say(rates.sends), say(rates.receives), say(rates.remote))
    return (
        *operations,
        say_bytes(rates.bytes_sent),
        say_bytes(rates.bytes_received),
        say_error(rates.errors),
    )


def say(rate: float) -> str:
    """A rate in few characters: 0, 12, 3.4 k, 5.6 M."""
    for unit in ("", " k", " M"):
        if rate < 1000:
            return f"{rate:.3g}{unit}"
        rate /= 1000
    return f"{rate:.3g} G"


def say_bytes(rate: float | None) -> str:
    """Bytes per second."""
    if rate is None:
        return "-"
    text = say(rate)
    return f"{text}B/s" if " " in text else f"{text} B/s"


def say_error(rate: float) -> Text:
    """A rate that is red unless it is 0."""
    return Text(say(rate), "red" if rate else "")


def describe(screen: Screen) -> dict[str, Any]:
    """The document."""
    return {"schema": SCHEMA, **asdict(screen)}
