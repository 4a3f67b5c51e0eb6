# SPDX-License-Identifier: BSD-3-Clause
"""Handles of other processes' memory, which travel as a few bytes."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from typing import Any, Self, TypeGuard

from ofipy._base.binding import check, ffi, lib
from ofipy._base.contents import plain_bytes
from ofipy._base.errors import InvalidArgument, RemoteAccessError
from ofipy._base.flags import Access
from ofipy._base.record import Record, set_field
from ofipy._base.versions import Versions

__all__ = [
    "DEVICE",
    "READS",
    "REMOTE",
    "WRITES",
    "RemoteMemory",
    "RemoteRegion",
    "is_of_device",
    "region_ways",
    "remote_memory",
]

REMOTE = Access.REMOTE_READ | Access.REMOTE_WRITE | Access.DEVICE_ATOMIC
# Plain numbers: members of an enumeration cost ten times as much to look at.
READS, WRITES, DEVICE = (
    Access.REMOTE_READ.value,
    Access.REMOTE_WRITE.value,
    Access.DEVICE_ATOMIC.value,
)

_MAGIC = b"ofRR"
# Version 2 has the names of devices behind what version 1 is; without such names version 1 is written.
_VERSIONS = Versions(2, 1)
# Magic, version, a byte of zero, rights, key, offset, length.
_LAYOUT = struct.Struct("<4sBBHQQQ")
_SEGMENT = ffi.typeof("struct ofp_remote_segment *")
_SEGMENTS = ffi.typeof("struct ofp_remote_segment[]")
_ADDRESS = ffi.typeof("intptr_t")


class RemoteRegion(Record):
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
    """REMOTE_READ, REMOTE_WRITE, DEVICE_ATOMIC, or several of them."""
    ways: bytes
    """What devices call it beside its key, where it is reached in several ways; not the program's to interpret."""
    _rights: int
    _segment: int  # address of the next: what calls into C take
    _segment_memory: Any
    _learned: Any

    def __init__(self, key: int, offset: int, length: int, access: Access, ways: bytes = b"") -> None:
        for name, number in (("key", key), ("offset", offset), ("length", length)):
            if not isinstance(number, int) or not 0 <= number < 2**64:
                raise InvalidArgument(f"{name}={number!r} of a remote region; 0 to 2**64 - 1 is meant")
        if offset + length > 2**64:
            raise InvalidArgument(f"a remote region of {length} bytes at {offset} ends beyond 2**64")
        if not isinstance(access, Access) or not access or access & ~REMOTE:
            raise InvalidArgument(
                f"access={access!r} of a remote region; REMOTE_READ, REMOTE_WRITE or DEVICE_ATOMIC are meant"
            )
        memory = ffi.new(_SEGMENT, (offset, length, key))
        set_field(self, "key", key)
        set_field(self, "offset", offset)
        set_field(self, "length", length)
        set_field(self, "access", access)
        set_field(self, "ways", ways)
        set_field(self, "_rights", access.value)
        set_field(self, "_segment", int(ffi.cast(_ADDRESS, memory)))
        set_field(self, "_segment_memory", memory)
        set_field(self, "_learned", _learn(key, ways) if ways else None)

    def __repr__(self) -> str:
        # What devices call it is long, and says nothing.
        return f"RemoteRegion(key={self.key}, offset={self.offset}, length={self.length}, access={self.access!r})"

    @classmethod
    def from_bytes(cls, blob: bytes | bytearray | memoryview) -> Self:
        """Read what ``bytes(remote)`` wrote, in any process.

        Raises
        ------
        InvalidArgument
            When it is not that, whole and unchanged in form.
        IncompatiblePeer
            When it is of another version.
        BufferTypeError
            When it is no bytes at all.
        """
        blob = plain_bytes(blob, "from_bytes")
        if len(blob) < 5 or blob[:4] != _MAGIC or not blob[4]:
            raise InvalidArgument(
                f"{len(blob)} bytes that are not a remote region",
                remedy="pass what bytes(region.remote) is at the peer, unchanged",
            )
        version, size = blob[4], len(blob)
        if version > _VERSIONS.newest:
            raise _VERSIONS.incompatible(Versions(version), "remote regions as bytes")
        if size < _LAYOUT.size or (size > _LAYOUT.size) != (version == 2):
            raise InvalidArgument(
                f"a remote region of {size} bytes; {_LAYOUT.size} are meant{', and more' if version == 2 else ''}"
            )
        _, _, zero, rights, key, offset, length = _LAYOUT.unpack_from(blob)
        if zero or not rights or rights & ~REMOTE.value:
            raise InvalidArgument(
                "a remote region with rights that this ofipy does not know",
                remedy="pass what bytes(region.remote) is at the peer, unchanged; a later ofipy there may know more",
            )
        ways = bytes(blob[_LAYOUT.size :])
        return cls(key=key, offset=offset, length=length, access=Access(rights), ways=ways)

    def __bytes__(self) -> bytes:
        version = 2 if self.ways else 1
        head = _LAYOUT.pack(_MAGIC, version, 0, self._rights, self.key, self.offset, self.length)
        return head + self.ways

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (bytes(self),)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> RemoteRegion:
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InvalidArgument(f"remote[{part!r}]; remote[begin:end] in bytes is meant")
        begin, end, _ = part.indices(self.length)
        return RemoteRegion(self.key, self.offset + begin, max(end - begin, 0), self.access, self.ways)


def _learn(key: int, ways: bytes) -> Any:
    """Have operations that name the key find what devices call the region, as long as the result lives."""
    result = lib.ofp_remote_ways_learn(key, ways, len(ways))
    if result == -errno.EINVAL:
        raise InvalidArgument("a remote region with names of devices that are none")
    check(result, operation="remote")
    return ffi.gc(ffi.new("char *"), lambda _: lib.ofp_remote_ways_forget(key))


def region_ways(domain: Any, handle: Any, provider: str) -> bytes:
    """What devices call a region that was just made, as C tells it."""
    if not handle.has_ways:
        return b""
    room, length = ffi.new("char[]", lib.OFP_REGION_WAYS_MAX), ffi.new("size_t *", lib.OFP_REGION_WAYS_MAX)
    check(lib.ofp_region_ways(domain, handle.id, room, length), operation="register", provider=provider)
    return bytes(ffi.buffer(room, length[0]))


class RemoteMemory:
    """The remote side of one operation, as a record says it."""

    __slots__ = ("count", "key", "length", "offset", "segments")

    def __init__(self, offset: int, key: int, length: int, segments: Any, count: int) -> None:
        self.offset = offset
        self.key = key
        self.length = length
        """Bytes, over all segments."""
        self.segments = segments
        """``struct ofp_remote_segment[]``, None for one piece."""
        self.count = count
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
        raise InvalidArgument("an empty list of remote regions; one or more are meant", operation=operation)
    if len(pieces) > limit:
        raise InvalidArgument(
            f"{len(pieces)} remote regions; {limit} is the limit of this provider",
            operation=operation,
            provider=provider,
            remedy="use several operations",
        )
    segments = ffi.new(_SEGMENTS, [(piece.offset, piece.length, piece.key) for piece in pieces])
    return RemoteMemory(0, 0, sum(piece.length for piece in pieces), segments, len(pieces))


def is_of_device(remote: Any) -> bool:
    """Whether atomics on it are the device's: of a list, on any piece."""
    pieces = tuple(remote) if _is_list(remote) else (remote,)
    return any(isinstance(piece, RemoteRegion) and piece._rights & DEVICE for piece in pieces)


def _is_list(remote: Any) -> TypeGuard[Iterable[Any]]:
    return isinstance(remote, Iterable) and not isinstance(remote, bytes | bytearray | str)


def _names(rights: int) -> str:
    return " and ".join(str(right.name) for right in Access(rights))
