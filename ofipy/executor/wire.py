# SPDX-License-Identifier: BSD-3-Clause
"""What travels between an executor and its workers, and by which tags.

A tag is a mark, a direction, a kind, and the number of a task:

=====  =======================================================
bits
=====  =======================================================
16     the mark
4      the direction, :class:`To`
4      the kind, :class:`Kind`
40     the number of the task; 0 in messages without one
=====  =======================================================

The number is in the tag and not in the pickle. So a pickle that cannot be read fails its own task and no other.
"""

import enum
import socket

from ofipy._base.errors import FabricError
from ofipy._base.versions import Versions

__all__ = [
    "HELLO_MAX",
    "NUMBERS",
    "Kind",
    "To",
    "filter_of",
    "kind_of",
    "number_of",
    "pack_hello",
    "read_hello",
    "tag",
    "worker_name",
]

_MARK = 0xEC5E << 48
NUMBERS = 1 << 40
"""Numbers of tasks are below."""
_KIND_BITS = 40
_TO_BITS = 44
_VERSIONS = Versions(1)
HELLO_MAX = 512
"""Bytes of the longest HELLO."""


class To(enum.IntEnum):
    """Which receives a message is for."""

    DOOR = 1
    """Of the executor, from any source."""
    EXECUTOR = 2
    """Of the executor, from one worker."""
    WORKER = 3
    NOBODY = 4
    """Receives for it end with their peer."""


class Kind(enum.IntEnum):
    """What a message is."""

    HELLO = 1
    """A worker has come: a version, and its name."""
    WELCOME = 2
    """The answer: the executor's main module, pickled."""
    READY = 3
    """The worker has loaded the main module."""
    TASK = 4
    RESULT = 5
    LEAVE = 6
    """The worker begins no further task."""
    STOP = 7
    """The worker is to end; the answer to LEAVE."""
    REFUSED = 8
    """The executor does not accept the worker: the reason, as text."""


def tag(to: To, kind: Kind = Kind.HELLO, number: int = 0) -> int:
    """The tag of a message."""
    return _MARK | to << _TO_BITS | kind << _KIND_BITS | number


def filter_of(to: To) -> dict[str, int]:
    """Arguments of a receive of every message of one direction."""
    return {"tag": tag(to), "ignore": (1 << _TO_BITS) - 1}


def kind_of(tag: int) -> int:
    """The kind of a message; a peer may have sent one that is not known."""
    return tag >> _KIND_BITS & 0xF


def number_of(tag: int) -> int:
    """The number of a message's task."""
    return tag & NUMBERS - 1


def worker_name(process: int) -> str:
    """What people call a worker of this host, unless it is given a name."""
    return f"{process} on {socket.gethostname()}"


def pack_hello(name: str) -> bytes:
    """A worker's first message.

    Parameters
    ----------
    name : str
        What people call the worker; cut where it is too long.
    """
    return bytes([_VERSIONS.newest]) + name.encode()[: HELLO_MAX - 1]


def read_hello(blob: bytes) -> str:
    """The name of a worker.

    Raises
    ------
    FabricError
        When it is no hello.
    IncompatiblePeer
        When the worker speaks another version.
    """
    if not blob:
        raise FabricError("a first message of a worker that says no version")
    theirs = Versions(blob[0])
    if not _VERSIONS.include_one_of(theirs):
        raise _VERSIONS.incompatible(theirs, "the executor's messages")
    return blob[1:].decode(errors="replace")
