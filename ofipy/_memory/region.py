# SPDX-License-Identifier: BSD-3-Clause
"""Memory regions: memory that is registered once and then used by many operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ofipy._base.arrays import np
from ofipy._base.binding import check, ffi, lib
from ofipy._base.contents import refuse_objects
from ofipy._base.errors import BufferTypeError, Closed, FabricError, InvalidArgument, NotSupported
from ofipy._base.flags import Access, Cap
from ofipy._base.lifetime import Handle, Opening, ProcessBound
from ofipy._base.owner import foreign
from ofipy._discovery.domain import Domain
from ofipy._memory.foreign import host_array
from ofipy._memory.remote import REMOTE, RemoteRegion, region_ways

if TYPE_CHECKING:
    import numpy.typing as npt


__all__ = ["Region", "check_rights", "own_region", "register"]

_CHARS = ffi.typeof("char[]")
_WRITES = Access.RECV | Access.READ | Access.REMOTE_WRITE | Access.DEVICE_ATOMIC


class Region(ProcessBound):
    """A piece of registered memory; ``region[a:b]`` is a smaller piece of the same.

    Operations on a region cost least: its place is known and nothing has to be exported. Made by
    :meth:`Endpoint.register`, :meth:`Domain.register` and :meth:`Domain.region`.
    """

    __slots__ = (
        "_access",
        "_core",
        "_domain",
        "_id",
        "_keep",
        "_key",
        "_length",
        "_offset",
        "_remote_base",
        "_segment",
        "_segment_memory",
        "_start",
        "_ways",
    )

    _instead = "send bytes(region.remote)"

    def __init__(
        self,
        domain: Domain,
        number: int,
        offset: int,
        length: int,
        *,
        start: int,
        access: Access,
        key: int,
        remote_base: int,
        ways: bytes = b"",
        keep: Any,
        core: Handle | None,
    ) -> None:
        self._domain = domain
        self._id = number
        self._offset = offset
        self._length = length
        self._start = start  # offset of the first byte of `keep`
        self._access = access
        self._key = key
        self._remote_base = remote_base  # what peers add to offsets
        self._ways = ways  # what devices call it beside that
        self._keep = keep  # exports the memory, so it neither moves nor goes away
        self._core = core  # None: the memory's last user closes it
        # What calls into C take: one integer in place of three.
        self._segment_memory = ffi.new(
            "struct ofp_segment *", {"region": number, "offset": offset, "length": length}
        )
        self._segment = int(ffi.cast("intptr_t", self._segment_memory))

    @property
    def id(self) -> int:
        """What records call it; of no other region, also when it is closed."""
        return self._id

    @property
    def offset(self) -> int:
        """Bytes from the start of the registered memory."""
        return self._offset

    @property
    def length(self) -> int:
        """Bytes."""
        return self._length

    @property
    def access(self) -> Access:
        """What it may be used for."""
        return self._access

    @property
    def key(self) -> int:
        """Remote key, 0 without remote access."""
        return self._key

    @property
    def remote(self) -> RemoteRegion:
        """The handle by which peers reach it; ``bytes(region.remote)`` travels.

        Raises
        ------
        InvalidArgument
            When peers may not reach it.
        Closed
            When it is closed, which ends the access of all who hold its handle.
        """
        if self.closed:
            raise Closed(f"region {self._id} is closed", operation="remote")
        rights = self._access & REMOTE
        if not rights:
            raise InvalidArgument(
                f"{self!r} grants no remote access",
                operation="remote",
                remedy="register it with access='remote_read', 'remote_write' or both",
            )
        return RemoteRegion(self._key, self._remote_base + self._offset, self._length, rights, self._ways)

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The bytes as an array; what is written to it is in the region."""
        array = np.frombuffer(ffi.buffer(self._keep), dtype=np.uint8)
        array.flags.writeable = bool(self._access & _WRITES)
        begin = self._offset - self._start
        return array[begin : begin + self._length]

    @property
    def closed(self) -> bool:
        """Whether it, or its domain, was closed."""
        return self._core is not None and not self._core.is_open

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> Region:
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InvalidArgument(f"region[{part!r}]; region[begin:end] in bytes is meant")
        begin, end, _ = part.indices(self._length)
        return Region(
            self._domain,
            self._id,
            self._offset + begin,
            max(end - begin, 0),
            start=self._start,
            access=self._access,
            key=self._key,
            remote_base=self._remote_base,
            ways=self._ways,
            keep=self._keep,
            core=self._core,
        )

    def __repr__(self) -> str:
        state = "closed" if self.closed else (self._access.name or "no access").lower()
        part = f" at {self._offset}" if self._offset else ""
        return f"<Region {self._id} of {self._domain.provider}: {self._length} bytes{part}, {state}>"

    def close(self) -> None:
        """End the registration, of all pieces of it. A second call does nothing.

        Raises
        ------
        Busy
            While operations use it.
        """
        if self._core is not None:
            self._core.close()

    def __enter__(self) -> Region:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except FabricError:
            if error is None:
                raise


def register(
    domain: Domain,
    buffer: Any,
    rights: Access,
    key: int | None,
    counted: dict[str, Any],
) -> Region:
    """Make a region of a contiguous buffer; see :meth:`Domain.register`. `counted`: what counts in it, as C has it."""
    check_rights(domain, rights, "register")
    _check_key(domain, key, rights)
    pointer = domain._pointer("register")
    writable = bool(rights & _WRITES)
    refuse_objects(buffer, "register")
    try:
        foreign = None if _has_buffer(buffer) else host_array(buffer, writable=writable, operation="register")
        memory = ffi.from_buffer(_CHARS, buffer if foreign is None else foreign, writable)
    except (TypeError, ValueError, BufferError) as error:
        raise BufferTypeError(
            f"{type(buffer).__name__} as a region with {rights}: {error}",
            operation="register",
            remedy="a contiguous, writable buffer is meant; access='send' takes a read-only one",
        ) from error
    length, handle = ffi.sizeof(memory), ffi.new("struct ofp_region_handle *")
    attributes = ffi.new(
        "struct ofp_region_attr *",
        {
            "base": memory,
            "length": length,
            "access": rights.value,
            "has_key": key is not None,
            "key": key or 0,
            **counted,
        },
    )
    with Opening(lambda: handle.id, lambda region: lib.ofp_region_close(pointer, region)) as opening:
        result = lib.ofp_region_register(pointer, attributes, handle)
        if key is not None and result == -lib.OFP_ENOKEY:
            raise InvalidArgument(
                f"key={key:#x} is in use in this domain, or its transport makes the keys itself",
                operation="register",
                provider=domain.provider,
                remedy="leave `key` out",
            )
        check(result, operation="register", provider=domain.provider)
        provider = domain.provider

        def close(region: int, keep: Any = memory) -> None:
            # Until then the memory stays, also when nobody has the Region any more: peers may be in it, and records.
            check(lib.ofp_region_close(pointer, region), operation="close a region", provider=provider)

        # Last: the operations of endpoints may be using it until those are closed.
        core = Handle(handle.id, close, (domain._core,), "region", last=True, opening=opening)
    ways = region_ways(pointer, handle, provider)
    return Region(
        domain,
        handle.id,
        0,
        length,
        start=0,
        access=rights,
        key=handle.key,
        remote_base=handle.remote_base,
        ways=ways,
        keep=memory,
        core=core,
    )


def check_rights(domain: Domain, rights: Access, operation: str) -> None:
    """Refuse rights that the provider cannot grant.

    Raises
    ------
    NotSupported
        When its device has no atomics, or it knows none.
    """
    if rights & Access.DEVICE_ATOMIC and not domain.info.caps & Cap.DEVICE_ATOMIC:
        raise NotSupported(
            f"access=device_atomic: {domain.provider} has no atomics of a device here",
            operation=operation,
            provider=domain.provider,
            remedy="access='remote_read|remote_write' allows those that this process carries out; `ofipy info` lists "
            "device_atomic where there are others",
        )


def own_region(region: Region, domain: Domain, operation: str) -> Region:
    """The region, when operations of this domain may use it.

    Raises
    ------
    InvalidArgument
        When it belongs to another domain.
    Closed
        When it is closed.
    """
    if region._domain is not domain:
        raise foreign(
            repr(region),
            "domain",
            operation=operation,
            provider=domain.provider,
            remedy="register the memory in the domain of this endpoint too: ep.register(buffer)",
        )
    if region.closed:
        raise Closed(
            f"{region!r} is closed",
            errno=lib.OFP_ENOREGION,
            operation=operation,
            provider=domain.provider,
            remedy="register the memory again",
        )
    return region


def _has_buffer(buffer: Any) -> bool:
    try:
        memoryview(buffer)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def _check_key(domain: Domain, key: int | None, rights: Access) -> None:
    if key is None:
        return
    bits = 8 * min(domain.info.mr_key_size or 8, 8)
    if not isinstance(key, int) or not 0 <= key < 2**bits:
        raise InvalidArgument(f"key={key!r}; 0 to 2**{bits} - 1 is meant", operation="register")
    if not rights & REMOTE:
        raise InvalidArgument(f"key={key:#x} of a region that peers may not reach", operation="register")
