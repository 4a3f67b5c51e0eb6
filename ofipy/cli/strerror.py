# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy strerror``: what an error code or name means, and which exception it is in Python."""

import errno
import inspect
from typing import Any

import click

from ofipy._base import errors
from ofipy._base.binding import failure, lib
from ofipy.cli.support import print_json

__all__ = ["show_error"]

SCHEMA = 1
# Numbers that libfabric has, too, with the same meaning (fi_errno(3)).
_OF_LIBFABRIC = frozenset(("ETOOSMALL", "ETRUNC", "ENOKEY", "EOVERRUN", "ENORX"))


def show_error(asked: str, *, as_json: bool) -> None:
    """Print every error that has this code or name.

    Parameters
    ----------
    asked : str
        A number of either sign, a name such as EAGAIN, FI_EAGAIN or OFP_EPEERLOST, or an exception's name.
    as_json : bool
        One document in place of lines.

    Raises
    ------
    click.UsageError
        When there is no such error.
    """
    codes = find_codes(asked.strip())
    if not codes:
        raise click.UsageError(f"there is no error {asked}; a number, EAGAIN, FI_ETRUNC or PeerLost is meant")
    found = [describe(code) for code in codes]
    if as_json:
        print_json({"schema": SCHEMA, "errors": found})
        return
    for each in found:
        click.echo(f"{each['code']} {' '.join(each['names'])}: {each['text']}")
        click.echo(f"    ofipy.{each['exception']}: {each['meaning']}")
        if each["remedy"]:
            click.echo(f"    {each['remedy']}")


def own_codes() -> dict[str, int]:
    """The codes that have no errno, by name."""
    return {
        name.removeprefix("OFP_"): getattr(lib, name)
        for name in dir(lib)
        if name.startswith("OFP_E") and is_code(name)
    }


def is_code(name: str) -> bool:
    """Whether a constant is an error's: the others that begin with OFP_E have a second word."""
    return "_" not in name.removeprefix("OFP_") and getattr(lib, name) > max(errno.errorcode)


def find_codes(asked: str) -> list[int]:
    """The codes that are meant, several where a name is used twice."""
    own, system = own_codes(), {name: code for name, code in vars(errno).items() if name.startswith("E")}
    digits = asked.removeprefix("-")
    if digits.isascii() and digits.isdecimal():
        code = int(digits[:9])
        return [code] if code in errno.errorcode or code in own.values() else []
    name = asked.upper()
    if name.startswith("OFP_"):
        return [own[name[4:]]] if name[4:] in own else []
    if name.startswith("FI_"):
        tables = (own,) if name[3:] in _OF_LIBFABRIC else (system,)
        return [table[name[3:]] for table in tables if name[3:] in table]
    by_name = [table[name] for table in (own, system) if name in table]
    return by_name or [
        code for code in (*errno.errorcode, *own.values()) if type(failure(code)).__name__.upper() == name
    ]


def describe(code: int) -> dict[str, Any]:
    """One error in the document."""
    error = failure(code)
    own = [f"OFP_{name}" for name, number in own_codes().items() if number == code]
    kind = type(error)
    return {
        "code": code,
        "names": own or [errno.errorcode[code]],
        "text": error.message,
        "exception": kind.__name__,
        "meaning": meaning_of(kind),
        "remedy": error.remedy,
    }


def meaning_of(kind: type[errors.FabricError]) -> str:
    """The first sentence of what the reference says of an exception, without its markup."""
    first = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return " ".join(first.split()).replace(":class:", "").replace("`", "")
