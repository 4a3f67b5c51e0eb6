# SPDX-License-Identifier: BSD-3-Clause
"""What a ping and its server say to each other: a hello each, then numbered messages that come back as they are.

Every message is tagged. A client asks with :data:`TAG_ASK`, and is answered with :data:`TAG_ANSWER`. The first byte
says what a message is. The server stores nothing of a client, so one that was started again answers as before.

- `H`, hello: a JSON object with ``protocol`` (newest version) and ``earlier`` (how many before it). The answer also has
  ``largest`` (bytes) and ``serves`` (names).
- `E`, echo: 8 bytes of the client's run, 8 bytes of number, and the payload. The answer is the same.
- `B`, bye: the client leaves, and is not answered.
"""

import json
import struct
from typing import Any

from ofipy._base.versions import Versions

__all__ = [
    "BYE",
    "ECHO",
    "HEADER",
    "HELLO",
    "LARGEST",
    "NAME",
    "TAG_ANSWER",
    "TAG_ASK",
    "VERSIONS",
    "WireError",
    "pack_hello",
    "parse_hello",
    "parse_versions",
]

TAG_ASK = 1
TAG_ANSWER = 2
HELLO, ECHO, BYE = b"H", b"E", b"B"
HEADER = struct.Struct("<cQQ")
"""Of an echo: kind, the client's run, number."""
LARGEST = 1 << 20
"""Bytes of payload that a server echoes."""
VERSIONS = Versions(1)
NAME = "the protocol of ofipy ping"
_QUOTED = 200
_VERSIONS_END = 1 << 16


class WireError(ValueError):
    """The other side sent what is no message of this protocol."""


def pack_hello(serves: tuple[str, ...] = ()) -> bytes:
    """The first message of either side; a server names what it serves."""
    said: dict[str, Any] = {"protocol": VERSIONS.newest, "earlier": VERSIONS.earlier}
    if serves:
        said |= {"largest": LARGEST, "serves": list(serves)}
    return HELLO + json.dumps(said).encode()


def parse_hello(data: bytes) -> dict[str, Any]:
    """The object of a hello.

    Raises
    ------
    WireError
        When it is no hello.
    """
    try:
        said = json.loads(data[1:].decode()) if data[:1] == HELLO else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise WireError(f"{bytes(data[:_QUOTED])!r} is no hello")
    return said


def parse_versions(said: dict[str, Any]) -> Versions:
    """The versions that a hello names.

    Raises
    ------
    WireError
        When it names none.
    """
    newest, earlier = (_read_number(said, name) for name in ("protocol", "earlier"))
    if newest == 0:
        raise WireError("the hello names no version")
    return Versions(newest, earlier)


def _read_number(said: dict[str, Any], name: str) -> int:
    value = said.get(name, 0)
    if type(value) is not int or not 0 <= value < _VERSIONS_END:
        raise WireError(f"the hello says {str(value)[:_QUOTED]!r} for {name}, and a version is meant")
    return value
