# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy exporter``: counters of processes and devices for Prometheus, served, written to a file, or printed."""

import ipaddress
import signal
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING

import click

from ofipy import __version__
from ofipy.cli.host import open_tree
from ofipy.cli.support import CommandError, ExitCode, status_console
from ofipy.exporter.collector import Collector
from ofipy.exporter.state import StateError
from ofipy.statistics.scanner import Scanner

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ofipy.exporter.server import Server

__all__ = ["run_exporter", "split_place"]

_SAVE_AFTER = 15.0  # seconds
MISSING = (
    "ofipy exporter needs the package prometheus-client: pip install '.[monitor]' in a checkout of ofipy"
)


def run_exporter(
    *,
    once: bool,
    listen: str | None,
    textfile: str | None,
    state: str | None,
    interval: float,
    peers: int,
    per_process: bool,
    root: str | None,
) -> None:
    """Export until a signal ends the command, or once.

    Parameters
    ----------
    once : bool
        Print what a scrape gets, or write it to `textfile`, and end.
    listen : str, optional
        ADDRESS:PORT at which Prometheus may scrape.
    textfile : str, optional
        File to replace every `interval`.
    state : str, optional
        File that keeps the sums from one exporter to the next.
    interval : float
        Seconds between two looks at the processes.
    peers : int
        Peers with series of their own.
    per_process : bool
        Whether each running process has series of its own.
    root : str, optional
        A recorded tree; None: this host and its processes.

    Raises
    ------
    CommandError
        When prometheus-client is not installed, the address cannot be listened at, or `state` is another file.
    OSError
        When a file cannot be read or written.
    """
    try:
        from ofipy.exporter.exposition import make_registry, write_file
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise CommandError(MISSING, code=ExitCode.NO_PROVIDER) from error
    tree = open_tree(root)
    scanner = open_reader() if root is None else None
    try:
        collector = Collector(
            scanner, tree, version=__version__, peers=peers, per_process=per_process, state=state
        )
    except StateError as error:
        raise CommandError(f"{state} is no state of an exporter, remove it: {error}") from error
    registry = make_registry(collector.collect_rows)
    if once:
        print_page(registry) if textfile is None else write_file(textfile, registry)
        collector.save()
        return
    server = start_server(listen, registry) if listen is not None else None
    ended = wait_for_signal()
    saved = time.monotonic()
    try:
        while True:
            if textfile is not None:
                write_file(textfile, registry)
            else:
                collector.scan()
            if time.monotonic() - saved > _SAVE_AFTER:
                collector.save()
                saved = time.monotonic()
            if ended.wait(interval):
                return
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()
        collector.save()


def open_reader() -> Scanner:
    from ofipy.statistics import Reader

    return Reader()


def print_page(registry: "CollectorRegistry") -> None:
    """Print what a scrape gets."""
    from prometheus_client import generate_latest

    click.echo(generate_latest(registry), nl=False)


def start_server(listen: str, registry: "CollectorRegistry") -> "Server":
    """Serve scrapes in a thread, and say where.

    Raises
    ------
    CommandError
        When the address cannot be listened at.
    """
    from ofipy.exporter.server import Server

    address, port = split_place(listen)
    try:
        server = Server(address, port, registry)
    except OSError as error:
        raise CommandError(f"cannot listen at {listen}: {error.strerror}") from error
    threading.Thread(target=server.serve_forever, name="scrapes", daemon=True).start()
    console = status_console()
    console.print(f"metrics are at {server.url}")
    if not ipaddress.ip_address(str(server.server_address[0])).is_loopback:
        console.print("everybody who reaches this address can read names of programs, and addresses of peers")
    return server


def split_place(listen: str) -> tuple[str, int]:
    """Address and port out of ``127.0.0.1:19228`` or ``[::1]:19228``.

    Raises
    ------
    click.UsageError
        When it is no such thing.
    """
    address, colon, port = listen.rpartition(":")
    if address.startswith("[") and address.endswith("]"):
        address = address[1:-1]
    elif ":" in address:
        colon = ""
    if not colon or not address or not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise click.UsageError(f"--listen {listen}: an address and a port are meant, as 127.0.0.1:19228")
    return address, int(port)


def wait_for_signal() -> threading.Event:
    """An event that SIGTERM sets; Ctrl-C interrupts, as everywhere."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    return ended
