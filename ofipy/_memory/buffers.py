# SPDX-License-Identifier: BSD-3-Clause
"""From what a program passes as memory to what a record says: regions, addresses, lists of pieces."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ofipy._base.arrays import np
from ofipy._base.binding import ffi, lib
from ofipy._base.contents import refuse_objects
from ofipy._base.errors import AccessDenied, BufferTypeError, InvalidArgument
from ofipy._base.flags import Access
from ofipy._base.limits import whole_number
from ofipy._discovery.av import wrong_peer
from ofipy._memory.allocation import MemoryDomain
from ofipy._memory.foreign import host_array
from ofipy._memory.layout import LAYOUT, make_layout
from ofipy._memory.region import Region, own_region
from ofipy._memory.remote import RemoteMemory

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "LOOKUP_SIZE",
    "LocalMemory",
    "address_of",
    "local_memory",
    "make_record",
    "region_memory",
]

# Arrays from this size on are looked up among the memory of domain.empty, which the provider moves faster.
LOOKUP_SIZE = 4096

# Rights of memory that an operation fills, and of memory that it sends from.
_FILLED, _SENT = Access.RECV | Access.READ, Access.SEND | Access.WRITE
_COMPOSED = frozenset((Region, list, tuple))
_CHARS = ffi.typeof("char[]")
_ADDRESS = ffi.typeof("uintptr_t")
_RECORDS = ffi.typeof("struct ofp_operation[]")
_SEGMENTS = ffi.typeof("struct ofp_segment[]")
# The fields of struct ofp_operation in their order; records.py checks the layout.
_LAYOUT = struct.Struct("<HBBIQQQQQQQIIQIIQQQQII")
_BOUND: int = lib.OFP_BOUND


# Neither compared nor shown, as other records inside: writing those methods takes a millisecond of the import.
class LocalMemory:
    """Local memory of one operation."""

    __slots__ = ("count", "keep", "length", "offset", "region", "segments")

    def __init__(self, region: int, offset: int, length: int, segments: Any, count: int, keep: Any) -> None:
        self.region = region
        self.offset = offset
        self.length = length
        """Bytes, over all segments."""
        self.segments = segments
        """``struct ofp_segment[]`` or, when `count` is LAYOUT, ``struct ofp_layout *``; None for one piece."""
        self.count = count
        """Segments, 0 for one piece."""
        self.keep = keep
        """What has to stay alive until the operation has finished."""


class _Piece:
    __slots__ = ("keep", "length", "offset", "region")

    def __init__(self, region: int, offset: int, length: int, keep: Any) -> None:
        self.region = region
        self.offset = offset
        self.length = length
        self.keep = keep


def address_of(memory: Any) -> int:
    """Address of what ``ffi.from_buffer`` returned."""
    return int(ffi.cast(_ADDRESS, memory))


def local_memory(buffer: Any, *, domain: MemoryDomain, writable: bool, operation: str) -> LocalMemory:
    """Describe a buffer, a region, a strided array, or a list of such.

    Raises
    ------
    BufferTypeError
        When it is not memory, holds Python objects, or is read-only but has to be written.
    InvalidArgument, Closed
        When a region is another domain's, or closed.
    """
    if type(buffer) not in _COMPOSED:
        refuse_objects(buffer, operation)
        # Most are one contiguous piece of plain memory; what else it is, or what is wrong with it, follows below.
        try:
            memory = ffi.from_buffer(_CHARS, buffer, writable)
        except (TypeError, ValueError, BufferError):
            pass
        else:
            length = len(memory)
            known = domain._memory
            if length < LOOKUP_SIZE or not (known._starts or length > known.owned.above):
                return LocalMemory(0, int(ffi.cast(_ADDRESS, memory)), length, None, 0, memory)
    limit = min(domain.info.segment_limit, lib.OFP_SEGMENT_LIMIT)
    parts = buffer if isinstance(buffer, list | tuple) else (buffer,)
    pieces: list[_Piece] = []
    for part in parts:
        for piece in _pieces(part, domain, writable, operation):
            pieces.append(piece)
            if len(pieces) > limit:
                return _laid_out(parts, domain, writable, operation)
    if len(pieces) == 1:
        only = pieces[0]
        return LocalMemory(only.region, only.offset, only.length, None, 0, only.keep)
    segments = ffi.new(_SEGMENTS, max(len(pieces), 1))
    for segment, piece in zip(segments, pieces, strict=False):
        segment.region, segment.offset, segment.length = piece.region, piece.offset, piece.length
    if not pieces:
        return LocalMemory(0, 0, 0, None, 0, None)
    total = sum(piece.length for piece in pieces)
    return LocalMemory(0, 0, total, segments, len(pieces), (segments, pieces))


def _laid_out(parts: Any, domain: MemoryDomain, writable: bool, operation: str) -> LocalMemory:
    """The memory of more pieces than the transport takes as segments."""
    layout, length, keep = make_layout(_whole_array(part, domain, writable, operation) for part in parts)
    return LocalMemory(0, 0, length, layout, LAYOUT, keep)


def _whole_array(buffer: Any, domain: MemoryDomain, writable: bool, operation: str) -> npt.NDArray[Any]:
    """The memory of one part, however many pieces it has."""
    if isinstance(buffer, Region):
        own_region(buffer, domain, operation)
        # C checks the rights of segments; a layout has addresses only.
        if not buffer.access & (_FILLED if writable else _SENT):
            raise AccessDenied(
                f"{buffer!r} is not registered for this",
                operation=operation,
                provider=domain.provider,
                remedy="register it with access='recv|read'"
                if writable
                else "register it with access='send|write'",
            )
        return buffer.array
    refuse_objects(buffer, operation)
    try:
        return np.frombuffer(ffi.buffer(ffi.from_buffer(_CHARS, buffer, writable)), np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        return _strided(buffer, writable, operation, error)


def region_memory(
    region: Region, offset: int, length: int | None, *, domain: MemoryDomain, operation: str
) -> LocalMemory:
    """A part of a region as local memory of the raw tier; without a length all behind the offset.

    Raises
    ------
    InvalidArgument
        When it is not within the region, or the region is another domain's.
    Closed
        When the region is closed.
    """
    own_region(region, domain, operation)
    size = _part_length(region, offset, length, operation)
    return LocalMemory(region._id, region._offset + offset, size, None, 0, region)


def _part_length(region: Region, offset: int, length: int | None, operation: str) -> int:
    """Bytes of a part of a region; no length means up to its end.

    Raises
    ------
    InvalidArgument
        When it is not within the region.
    """
    try:
        size = region._length - offset if length is None else length
        if offset >= 0 and size >= 0 and offset + size <= region._length:
            return size
    except TypeError:
        pass  # the next lines say which
    whole_number("offset", offset, 0, region._length, "bytes", operation=operation)
    if length is not None:
        whole_number("length", length, 0, region._length, "bytes", operation=operation)
    raise InvalidArgument(
        f"{length} bytes at offset {offset} of a region of {region._length} bytes",
        operation=operation,
        remedy="stay within the region, or register more memory",
    )


def _pieces(buffer: Any, domain: MemoryDomain, writable: bool, operation: str) -> Iterator[_Piece]:
    if isinstance(buffer, Region):
        own_region(buffer, domain, operation)
        yield _Piece(buffer._id, buffer._offset, buffer._length, buffer)
        return
    refuse_objects(buffer, operation)
    try:
        memory = ffi.from_buffer(_CHARS, buffer, writable)
    except (TypeError, ValueError, BufferError) as error:
        array = _strided(buffer, writable, operation, error)
        for run in _runs(array):
            yield from _pieces(run, domain, writable, operation)
        return
    address, length = address_of(memory), ffi.sizeof(memory)
    if length >= LOOKUP_SIZE and domain._memory:
        found = domain._memory.find(address, length)
        if found is not None:
            yield _Piece(found.number, address - found.address, length, memory)
            return
    if length > domain._memory.owned.above:
        owned = domain._memory.owned.find(buffer, address, length)
        if owned is not None:
            yield _Piece(*owned, length, memory)
            return
    yield _Piece(lib.OFP_REGION_PROCESS, address, length, memory)


def _strided(buffer: Any, writable: bool, operation: str, error: Exception) -> npt.NDArray[Any]:
    """The array of a buffer that is not contiguous; raises when that is not what is wrong with it."""
    try:
        view = memoryview(buffer)
    except TypeError:
        foreign = host_array(buffer, writable=writable, operation=operation)
        if foreign is not None:
            return foreign
        raise BufferTypeError(
            f"a {type(buffer).__name__} is not memory",
            operation=operation,
            remedy="bytes, bytearray, memoryview, a numpy array, a Region or a list of them is meant",
        ) from None
    if writable and view.readonly:
        raise BufferTypeError(
            f"the {type(buffer).__name__} is read-only, so nothing can be received into it",
            operation=operation,
            remedy="use a bytearray or a writable array",
        ) from None
    if view.c_contiguous:
        raise BufferTypeError(f"{type(buffer).__name__}: {error}", operation=operation) from error
    return np.asarray(buffer)


def _runs(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Contiguous parts of an array, in C order of its elements."""
    if array.flags.c_contiguous:
        yield array
        return
    for index in range(array.shape[0]):
        # A slice, not an index: even a single element stays a view.
        part = array[index : index + 1]
        yield from _runs(part[0] if part.ndim > 1 else part)


def make_record(
    op: int,
    memory: LocalMemory | None,
    *,
    peer: int,
    tag: int = 0,
    ignore: int = 0,
    data: int = 0,
    flags: int = 0,
    context: int = 0,
    remote: RemoteMemory | None = None,
    atomic_op: int = 0,
    datatype: int = 0,
    compare: LocalMemory | None = None,
    result: LocalMemory | None = None,
    incarnation: int | None = None,
) -> Any:
    """One ``struct ofp_operation``, constant; with the flag ``bound`` if an incarnation is given.

    Raises
    ------
    InvalidArgument
        When a number does not fit its field.
    """
    region = offset = length = segments = count = 0
    if memory is not None:
        region, offset, length, count = memory.region, memory.offset, memory.length, memory.count
        segments = address_of(memory.segments) if count else 0
    far_offset = far_key = far_segments = far_count = result_offset = result_region = 0
    if remote is not None:
        far_offset, far_key, far_count = remote.offset, remote.key, remote.count
        far_segments = address_of(remote.segments) if far_count else 0
        if compare is not None:
            # An atomic has no tag: the fields are shared.
            tag, ignore = compare.offset, compare.region
        if result is not None:
            result_offset, result_region = result.offset, result.region
    number = 0
    if incarnation is not None:
        number, flags = incarnation, flags | _BOUND
    try:
        packed = _LAYOUT.pack(
            op, atomic_op, datatype, peer, flags, context, tag, ignore, data, offset, length, region, 0, segments,
            count, far_count, far_segments, far_offset, far_key, result_offset, result_region, number,
        )  # fmt: skip
    except struct.error:
        raise _bad_number(
            peer=(peer, 32),
            tag=(tag, 64),
            ignore=(ignore, 64),
            remote_data=(data, 64),
            context=(context, 64),
            flags=(flags, 64),
            offset=(offset, 64),
            length=(length, 64),
            incarnation=(number, 32),
        ) from None
    return ffi.from_buffer(_RECORDS, packed)


def _bad_number(**fields: tuple[Any, int]) -> InvalidArgument:
    for name, (number, bits) in fields.items():
        if not hasattr(number, "__index__"):
            if name == "peer":
                return wrong_peer(number)
            return InvalidArgument(f"{name}={number!r}; a whole number is meant")
        if not 0 <= int(number) < 2**bits:
            return InvalidArgument(f"{name}={number}; 0 to 2**{bits} - 1 is meant")
    raise AssertionError(f"every number fits: {fields}")
