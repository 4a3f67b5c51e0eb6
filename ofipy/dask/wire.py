# SPDX-License-Identifier: BSD-3-Clause
"""What travels between two sides of a connection, and by which tags.

A side gives each connection a number of its own; the other side puts it into the tags of what it sends.

- ``CALL``, to a listener: the caller's number and address. ``ANSWER``: the listener's number, or a refusal.
- ``HEAD``: Dask's prelude with the sizes of all frames, and the first group of frames; or that the connection ends.
- ``FRAMES``: every further group, one message each.

Groups follow from the sizes alone, so both sides know them: neighbours that are small share a message, and with it
memory.
"""

import enum
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from distributed.protocol.utils import pack_frames_prelude
from distributed.utils import ensure_memoryview, nbytes

from ofipy._base.errors import InvalidArgument
from ofipy._base.versions import Versions

__all__ = [
    "GOODBYE",
    "NUMBERS",
    "Head",
    "Kind",
    "check_versions",
    "pack_answer",
    "pack_call",
    "pack_frames",
    "read_answer",
    "read_call",
    "read_head",
    "tag",
]

_MARK = 0xDA5C << 48
_VERSIONS = Versions(2)
NUMBERS = 1 << 40
"""Numbers of connections are below."""
_CALL = struct.Struct("<BQ")
_ANSWER = struct.Struct("<BQ")
_COUNT = struct.Struct("<Q")
_TOGETHER = 64 << 10  # bytes of frames that share a message
_MORE = b"\1"
GOODBYE = b"\0"
"""A head after which nothing comes."""


class Kind(enum.IntEnum):
    """What a message is; the lowest byte of its tag."""

    CALL = 0
    ANSWER = 1
    HEAD = 2
    FRAMES = 3


def tag(kind: Kind, number: int = 0) -> int:
    """The tag of a message to the connection of that number."""
    return _MARK | number << 8 | kind


def pack_call(number: int, address: str) -> bytes:
    """Ask for a connection; answers go to `number`."""
    return _CALL.pack(_VERSIONS.newest, number) + address.encode()


def read_call(blob: bytes) -> tuple[Versions, int, str]:
    """Versions, number and address of a caller.

    Raises
    ------
    InvalidArgument
        When it is none.
    """
    if len(blob) < _CALL.size:
        raise InvalidArgument(f"a call of {len(blob)} bytes")
    version, number = _CALL.unpack_from(blob)
    if number >= NUMBERS:
        raise InvalidArgument(f"a call with the number {number}")
    return Versions(version), number, blob[_CALL.size :].decode(errors="replace")


def check_versions(theirs: Versions, peer: str) -> None:
    """Check what the other side speaks.

    Raises
    ------
    IncompatiblePeer
        When this side does not.
    """
    if not _VERSIONS.include_one_of(theirs):
        raise _VERSIONS.incompatible(theirs, "the messages of Dask's connections", peer=peer)


def pack_answer(number: int | None) -> bytes:
    """Accept by a number, or refuse and say what this side speaks."""
    return _ANSWER.pack(number is not None, _VERSIONS.newest if number is None else number)


def read_answer(blob: bytes, peer: str) -> int | None:
    """The number that was accepted by; None: refused, or no answer at all.

    Raises
    ------
    IncompatiblePeer
        When the other side speaks another version.
    """
    if len(blob) != _ANSWER.size:
        return None
    accepted, number = _ANSWER.unpack(blob)
    if not accepted and number:
        check_versions(Versions(number), peer)
    return number if accepted and number < NUMBERS else None


def _groups(sizes: Sequence[int]) -> Iterator[slice]:
    """Which frames share a message; the first group may be empty, all others have bytes.

    What is unpickled in place lives as long as its memory: arrays of some size have their own, and so one that is kept
    keeps no other. Of small ones there may be thousands (a graph of tasks), too many for a message each.
    """
    first, together = 0, 0
    for number, size in enumerate(sizes):
        if size and together + size > _TOGETHER:
            yield slice(first, number)
            first, together = number, 0
        together += size
    yield slice(first, len(sizes))


def pack_frames(frames: Sequence[Any]) -> tuple[bytes, list[Any], int]:
    """A head, the messages that follow it, and the bytes of all."""
    sizes = [nbytes(frame) for frame in frames]
    groups = _groups(sizes)
    head = b"".join((_MORE, pack_frames_prelude(frames), *frames[next(groups)]))
    rest = [_join(frames[group]) for group in groups]
    return head, rest, len(head) + sum(map(len, rest))


def _join(frames: Sequence[Any]) -> Any:
    filled = [frame for frame in frames if nbytes(frame)]
    return ensure_memoryview(filled[0]) if len(filled) == 1 else b"".join(filled)


@dataclass(frozen=True, slots=True)
class Head:
    """What a head says of its message."""

    sizes: Sequence[int]
    """Of all frames."""
    first: memoryview
    """The group that came along."""

    @property
    def following(self) -> list[int]:
        """Bytes of each message that follows."""
        groups = _groups(self.sizes)
        next(groups)
        return [sum(self.sizes[group]) for group in groups]

    def frames(self, rest: Sequence[memoryview]) -> list[memoryview]:
        """All frames, once the messages that follow are there."""
        result: list[memoryview] = []
        for group, memory in zip(_groups(self.sizes), (self.first, *rest), strict=True):
            end = 0
            for size in self.sizes[group]:
                begin, end = end, end + size
                result.append(memory[begin:end])
        return result


def read_head(blob: memoryview) -> Head | None:
    """What is in a head; None: the connection ends.

    Raises
    ------
    InvalidArgument
        When it is damaged.
    """
    if blob[:1] != _MORE:
        return None
    try:
        (count,) = _COUNT.unpack_from(blob, 1)
        sizes = struct.unpack_from(f"<{count}Q", blob, 1 + _COUNT.size)
    except (struct.error, OverflowError) as error:
        raise InvalidArgument(f"a head of {len(blob)} bytes: {error}") from None
    first = blob[1 + _COUNT.size * (1 + count) :]
    if len(first) != sum(sizes[next(_groups(sizes))]):
        raise InvalidArgument(f"a head of {len(blob)} bytes, {len(first)} of them in frames")
    return Head(sizes, first)
