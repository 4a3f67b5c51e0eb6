# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy info --protocols``: which protocol messages get, as two connected endpoints of this process choose."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

import ofipy
from ofipy import FabricError, Protocol
from ofipy.cli.info import SCHEMA
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json
from ofipy.cli.tables import print_table

__all__ = ["describe_protocol", "show_protocols"]

CONNECT_TIMEOUT = 10  # seconds; the peer is on this host
UNLIMITED = 1 << 62  # bytes: transports name the limits of their arithmetic where they have no other
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def show_protocols(*, provider: str | None, as_json: bool) -> None:
    """Connect two endpoints of each provider, and print how messages between them travel.

    Parameters
    ----------
    provider : str, optional
        Only these; several names with commas.
    as_json : bool
        One document in place of tables.

    Raises
    ------
    CommandError
        After printing, when no provider has endpoints that need no connection.
    """
    names = dict.fromkeys(info.provider for info in ofipy.getinfo(provider=provider, ep_type="rdm"))
    found = [describe(name) for name in names]
    if as_json:
        print_json({"schema": SCHEMA, "protocols": found})
    else:
        for each in found:
            show_table(data_console(), each)
    if not found:
        raise CommandError("no provider is available that fits", code=ExitCode.NO_PROVIDER)


def describe(name: str) -> dict[str, Any]:
    """One provider in the document: what applies when two of its endpoints have connected, or why they cannot."""
    document: dict[str, Any] = {"provider": name, "domain": None, "way": None, "reason": None, "rows": []}
    try:
        with ofipy.open(provider=name) as here, ofipy.open(provider=name) as there:
            peer = here.insert(there.address, wait=CONNECT_TIMEOUT)
            exchange(here, there, peer)
            document |= {"domain": here.info.domain, "way": here.way(peer)}
            return document | {"rows": [describe_protocol(row) for row in here.protocols(peer)]}
    except FabricError as error:
        return document | {"reason": str(error)}


def exchange(here: ofipy.Endpoint, there: ofipy.Endpoint, peer: ofipy.Peer) -> None:
    """A message each way: with it both sides have what the other one grants at first."""
    arrival = there.trecv()
    here.tsend(b"", peer).wait(timeout=CONNECT_TIMEOUT)
    source = arrival.wait(timeout=CONNECT_TIMEOUT).source
    if source is not None:
        answer = here.trecv()
        there.tsend(b"", source).wait(timeout=CONNECT_TIMEOUT)
        answer.wait(timeout=CONNECT_TIMEOUT)


def describe_protocol(row: Protocol) -> dict[str, Any]:
    """One row in the document."""
    return {
        "direction": row.direction,
        "memory": row.memory,
        "from": row.from_size,
        "to": row.to_size,
        "protocol": row.protocol,
        "reason": row.reason,
        "cost_usec": row.cost_usec,
    }


def show_table(console: Console, document: dict[str, Any]) -> None:
    """A table of one info."""
    way = document["way"]
    over = f", over {way}" if way and way != document["provider"] else ""
    title = document["provider"] + (f", {document['domain']}{over}" if document["domain"] else "")
    if document["reason"] is not None:
        console.print(f"{title}: {document['reason']}", markup=False, highlight=False)
        return
    table = Table(title=title, title_justify="left")
    for heading in ("messages", "memory"):
        table.add_column(heading, no_wrap=True)
    for heading in ("from", "to"):
        table.add_column(heading, no_wrap=True, justify="right")
    for heading in ("protocol", "chosen by"):
        table.add_column(heading, no_wrap=True)
    table.add_column("µs", no_wrap=True, justify="right")
    for values in cells(document["rows"]):
        table.add_row(*values)
    print_table(console, table)


def cells(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """What the table shows of each row."""
    return [
        (
            row["direction"],
            row["memory"],
            describe_size(row["from"]),
            "" if row["to"] >= UNLIMITED - 1 else describe_size(row["to"]),
            row["protocol"],
            row["reason"],
            "" if row["cost_usec"] is None else f"{row['cost_usec']:.3g}",
        )
        for row in rows
    ]


def describe_size(size: int) -> str:
    """Bytes, in a larger unit where none are lost."""
    for unit, name in UNITS:
        if size and size % unit == 0:
            return f"{size // unit} {name}"
    return str(size)
