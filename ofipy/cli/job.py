# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy info --job``: which launcher started this process, as far as the environment tells. Nothing is joined."""

from typing import Any

from rich.table import Table

from ofipy._base.errors import FabricError
from ofipy.cli.info import SCHEMA
from ofipy.cli.support import CommandError, data_console, print_json
from ofipy.cli.tables import WRAPPED_WIDTH, print_table
from ofipy.jobs.found import Search, search
from ofipy.jobs.keys import configured

__all__ = ["show_job"]


def show_job(*, as_json: bool) -> None:
    """Print what was found, and why the others were not.

    Parameters
    ----------
    as_json : bool
        One document in place of a table.

    Raises
    ------
    CommandError
        After printing, when there is a launcher that cannot be joined.
    """
    looked = search()
    document = describe(looked)
    if as_json:
        print_json({"schema": SCHEMA, "job": document})
    else:
        show_table(document)
    if looked.error is not None:
        raise CommandError(str(looked.error))


def describe(looked: Search) -> dict[str, Any]:
    """What goes into the document."""
    found = looked.found
    return {
        "launcher": None if looked.error is not None else found.name if found is not None else "alone",
        "rank": found.rank if found is not None else None if looked.error is not None else 0,
        "size": found.size if found is not None else None if looked.error is not None else 1,
        "variables": dict(found.variables) if found is not None else {},
        "key": where_the_key_is(looked),
        "error": str(looked.error) if looked.error is not None else None,
        "launchers": [{"name": name, "reason": reason} for name, reason in looked.reasons.items()],
    }


def where_the_key_is(looked: Search) -> str | None:
    """Who gives the job its key, None when there is none, or no job."""
    try:
        if configured() is not None:
            return "OFIPY_AUTH_KEY_FILE"
    except FabricError as error:
        return str(error)
    if looked.found is None:
        return None
    return looked.found.name if looked.found.key is not None else "rank 0"


def show_table(document: dict[str, Any]) -> None:
    """A line about the job, and a row for each launcher."""
    console = data_console()
    table = Table()
    table.add_column("launcher", no_wrap=True)
    table.add_column("why, or why not", min_width=WRAPPED_WIDTH)
    for each in document["launchers"]:
        table.add_row(each["name"], each["reason"])
    print_table(console, table)
    if document["error"] is not None:
        return
    size = "as many as the launcher says" if document["size"] is None else document["size"]
    console.print(f"{document['launcher']}: rank {document['rank']} of {size}")
    for name, value in document["variables"].items():
        console.print(f"    {name:22} {value}")
    console.print(f"    {'key':22} {document['key'] or '-'}")
