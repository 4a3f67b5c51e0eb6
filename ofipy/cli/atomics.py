# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy info --atomics``: every atomic operation that there is here, as the domains themselves answer."""

from typing import Any

from rich.console import Console
from rich.table import Table

import ofipy
from ofipy import AtomicOp, Cap, Datatype, Domain, FabricError, Info
from ofipy._base.atomic_types import KINDS
from ofipy.cli.info import SCHEMA
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json
from ofipy.cli.tables import WRAPPED_WIDTH, print_table

__all__ = ["show_atomics"]


def show_atomics(*, provider: str | None, caps: str | None, ep_type: str | None, as_json: bool) -> None:
    """Print the atomic operations of every info that has any.

    Parameters
    ----------
    provider, caps, ep_type : str, optional
        Filters, as :func:`ofipy.getinfo` takes them; several names with commas.
    as_json : bool
        One document, with the elements of the longest vector, in place of tables.

    Raises
    ------
    CommandError
        After printing, when there is no such info.
    """
    infos = ofipy.getinfo(
        provider=provider, caps=caps.split(",") if caps is not None else None, ep_type=ep_type
    )
    found = [describe(info) for info in infos if info.caps & (Cap.ATOMIC | Cap.DEVICE_ATOMIC)]
    if as_json:
        print_json({"schema": SCHEMA, "atomics": found})
    else:
        for each in found:
            show_tables(data_console(), each)
    if not found:
        raise CommandError("no provider is available that has atomic operations", code=ExitCode.NO_PROVIDER)


def describe(info: Info) -> dict[str, Any]:
    """One info in the document: by kind, operation and dtype the elements of the longest vector.

    Those of a device are kinds of their own, where there are any: ``device_fetch``, for example.
    """
    document: dict[str, Any] = {
        "provider": info.provider,
        "fabric": info.fabric,
        "domain": info.domain,
        "ep_type": info.ep_type.name.lower(),
        "reason": None,
    }
    try:
        with ofipy.Fabric(info) as fabric, fabric.domain() as domain:
            of_device = {f"device_{kind}": matrix(domain, kind, device=True) for kind in KINDS}
            found = {kind: matrix(domain, kind) for kind in KINDS}
            return document | found | {kind: rows for kind, rows in of_device.items() if rows}
    except FabricError as error:
        return document | {"reason": str(error)}


def matrix(domain: Domain, kind: Any, *, device: bool = False) -> dict[str, dict[str, int]]:
    """The valid combinations of one kind."""
    rows = {
        op.name.lower(): {
            str(datatype.dtype): count
            for datatype in Datatype
            if (count := domain.atomic_valid(op, datatype, kind=kind, device=device))
        }
        for op in AtomicOp
    }
    return {op: counts for op, counts in rows.items() if counts}


def show_tables(console: Console, document: dict[str, Any]) -> None:
    """A table for each kind of one info."""
    title = f"{document['provider']}, {document['ep_type']}, {document['fabric']}/{document['domain']}"
    if document["reason"] is not None:
        console.print(f"{title}: {document['reason']}")
        return
    dtypes = [str(datatype.dtype) for datatype in Datatype]
    for kind in (*KINDS, *(f"device_{each}" for each in KINDS if f"device_{each}" in document)):
        table = Table(title=f"{title}: {kind}", title_justify="left", padding=(0, 0))
        table.add_column("op", no_wrap=True)
        for dtype in dtypes:
            # The digits below the name, so that thirteen columns fit a terminal.
            letters = dtype.rstrip("0123456789")
            table.add_column(f"{letters}\n{dtype.removeprefix(letters)}", no_wrap=True, justify="center")
        for op, counts in document[kind].items():
            table.add_row(op, *("x" if dtype in counts else "" for dtype in dtypes))
        print_table(console, table, build_list(f"{title}: {kind}", document[kind]))


def build_list(title: str, matrix: dict[str, dict[str, int]]) -> Table:
    """The same for a narrow terminal: the dtypes of each operation by name."""
    table = Table(title=title, title_justify="left")
    table.add_column("operation", no_wrap=True)
    table.add_column("dtypes", min_width=WRAPPED_WIDTH)
    for op, counts in matrix.items():
        table.add_row(op, " ".join(counts))
    return table
