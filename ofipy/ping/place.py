# SPDX-License-Identifier: BSD-3-Clause
"""Where a server is, as users write it: ``HOST``, ``HOST:PORT``, ``[ADDRESS]:PORT``."""

from dataclasses import dataclass

from ofipy._base.errors import InvalidArgument

__all__ = ["DEFAULT_PORT", "Place", "parse_place"]

DEFAULT_PORT = 19229
_PORTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Place:
    """A host and a port."""

    host: str
    """Name or address, without brackets; empty where none was named."""
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_place(text: str) -> Place:
    """A host and a port out of what a user wrote.

    Parameters
    ----------
    text : str
        ``node7``, ``node7:19229``, ``10.0.0.7``, ``fd00::7``, ``[fd00::7]:19229`` or ``:19229``. Without a port it is
        :data:`DEFAULT_PORT`.

    Raises
    ------
    InvalidArgument
        When it is no such thing.
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        good = bool(bracket) and bool(host) and (not rest or rest.startswith(":"))
        port = rest[1:] if rest else str(DEFAULT_PORT)
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
        good = True
    else:
        host, port, good = text, str(DEFAULT_PORT), bool(text)
    if not (good and port.isascii() and port.isdecimal() and 0 < int(port) < _PORTS):
        raise InvalidArgument(f"{text!r} is no place; HOST, HOST:PORT or [ADDRESS]:PORT is meant")
    return Place(host, int(port))
