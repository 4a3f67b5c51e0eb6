# SPDX-License-Identifier: BSD-3-Clause
"""Handles of other processes' memory, which travel as a few bytes."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeGuard

from ofipy._binding import ffi, lib
from ofipy._errors import InvalidArgument, RemoteAccessError
from ofipy._flags import Access
from ofipy._objects import plain_bytes

__all__ = ["READS", "REMOTE", "WRITES", "RemoteMemory", "RemoteRegion", "remote_memory"]

REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE
# Plain numbers: members of an enumeration cost ten times as much to look at.
READS, WRITES = Access.REMOTE_READ.value, Access.REMOTE_WRITE.value

_MAGIC = b"ofRR"
_VERSION = 1
# Magic, version, a byte of zero, rights, key, offset, length.
_LAYOUT = struct.Struct("<4sBBHQQQ")
_SEGMENT = ffi.typeof("struct ofp_remote_segment *")
_SEGMENTS = ffi.typeof("struct ofp_remote_segment[]")
_ADDRESS = ffi.typeof("intptr_t")


@dataclass(frozen=True, slots=True)
class RemoteRegion:
    """Memory of another process: what :attr:`Region.remote` is to those who are told of it.

    ``remote[a:b]`` is a smaller piece of the same, in bytes, and ``len(remote)`` its length. ``bytes(remote)`` is what
    travels, and :meth:`from_bytes` reads it; pickling does both. Whoever holds the bytes may do what they grant, as
    long as the region is open.

    Raises
    ------
    InvalidArgument
        When a number does not fit.
    """

    key: int
    """What its owner's transport calls the region."""
    offset: int
    """First byte, as the transport counts; not the program's to interpret."""
    length: int
    """Bytes."""
    access: Access
    """REMOTE_READ, REMOTE_WRITE or both."""
    _rights: int = field(init=False, repr=False, compare=False)
    _segment: int = field(
        init=False, repr=False, compare=False
    )  # address of the next: what calls into C take
    _segment_memory: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("key", "offset", "length"):
            number = getattr(self, name)
            if not isinstance(number, int) or not 0 <= number < 2**64:
                raise InvalidArgument(f"{name}={number!r} of a remote region; 0 to 2**64 - 1 is meant")
        if self.offset + self.length > 2**64:
            raise InvalidArgument(
                f"a remote region of {self.length} bytes at {self.offset} ends beyond 2**64"
            )
        if not isinstance(self.access, Access) or not self.access or self.access & ~REMOTE:
            raise InvalidArgument(
                f"access={self.access!r} of a remote region; REMOTE_READ, REMOTE_WRITE or both are meant"
            )
        memory = ffi.new(_SEGMENT, (self.offset, self.length, self.key))
        object.__setattr__(self, "_rights", self.access.value)
        object.__setattr__(self, "_segment", int(ffi.cast(_ADDRESS, memory)))
        object.__setattr__(self, "_segment_memory", memory)

    @classmethod
    def from_bytes(cls, blob: bytes | bytearray | memoryview) -> Self:
        """Read what ``bytes(remote)`` wrote, in any process.

        Raises
        ------
        InvalidArgument
            When it is not that, whole and unchanged in form, or of another version.
        BufferTypeError
            When it is no bytes at all.
        """
        blob = plain_bytes(blob, "from_bytes")
        if len(blob) < 5 or blob[:4] != _MAGIC:
            raise InvalidArgument("these bytes are not a remote region")
        if blob[4] != _VERSION:
            raise InvalidArgument(
                f"a remote region of version {blob[4]}; this ofipy reads version {_VERSION}"
            )
        if len(blob) != _LAYOUT.size:
            raise InvalidArgument(f"a remote region of {len(blob)} bytes; {_LAYOUT.size} are meant")
        _, _, zero, rights, key, offset, length = _LAYOUT.unpack(blob)
        if zero or not rights or rights & ~REMOTE.value:
            raise InvalidArgument("a remote region with rights that there are not")
        return cls(key=key, offset=offset, length=length, access=Access(rights))

    def __bytes__(self) -> bytes:
        return _LAYOUT.pack(_MAGIC, _VERSION, 0, self._rights, self.key, self.offset, self.length)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (bytes(self),)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> "RemoteRegion":
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InvalidArgument(f"remote[{part!r}]; remote[begin:end] in bytes is meant")
        begin, end, _ = part.indices(self.length)
        return RemoteRegion(self.key, self.offset + begin, max(end - begin, 0), self.access)


@dataclass(frozen=True, slots=True)
class RemoteMemory:
    """The remote side of one operation, as a record says it."""

    offset: int
    key: int
    length: int
    """Bytes, over all segments."""
    segments: Any
    """``struct ofp_remote_segment[]``, None for one piece."""
    count: int
    """Segments, 0 for one piece."""


def remote_memory(
    remote: RemoteRegion | Iterable[RemoteRegion], *, rights: int, limit: int, operation: str, provider: str
) -> RemoteMemory:
    """Describe one remote piece, or several, that must all grant these rights.

    Raises
    ------
    RemoteAccessError
        When a piece does not grant them.
    InvalidArgument
        When it is something else, or more pieces than the provider takes.
    """
    pieces: tuple[Any, ...] = tuple(remote) if _is_list(remote) else (remote,)
    for piece in pieces:
        if not isinstance(piece, RemoteRegion):
            raise InvalidArgument(
                f"a {type(piece).__name__} as remote memory",
                operation=operation,
                remedy="a RemoteRegion is meant: region.remote at the peer, sent here as bytes",
            )
        if rights & ~piece._rights:
            raise RemoteAccessError(
                f"{operation} needs {_names(rights)}, the remote region grants {_names(piece._rights)}",
                operation=operation,
                provider=provider,
                remedy="let its owner register it with more rights",
            )
    if len(pieces) == 1:
        only = pieces[0]
        return RemoteMemory(only.offset, only.key, only.length, None, 0)
    limit = min(limit, lib.OFP_SEGMENT_LIMIT)
    if not pieces:
        raise InvalidArgument("an empty list of remote regions", operation=operation)
    if len(pieces) > limit:
        raise InvalidArgument(
            f"{len(pieces)} remote regions; {limit} is the limit of this provider",
            operation=operation,
            provider=provider,
            remedy="use several operations",
        )
    segments = ffi.new(_SEGMENTS, [(piece.offset, piece.length, piece.key) for piece in pieces])
    return RemoteMemory(0, 0, sum(piece.length for piece in pieces), segments, len(pieces))


def _is_list(remote: Any) -> TypeGuard[Iterable[Any]]:
    return isinstance(remote, Iterable) and not isinstance(remote, bytes | bytearray | str)


def _names(rights: int) -> str:
    return " and ".join(str(right.name) for right in Access(rights))
