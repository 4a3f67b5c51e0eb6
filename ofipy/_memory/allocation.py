# SPDX-License-Identifier: BSD-3-Clause
"""Memory that a domain allocates: its arrays outlive every object of ofipy.

An array of ``domain.empty`` is mapped memory of the provider. It stays mapped until the last view of it is
gone, also after the domain was closed. C wants the regions gone before the domain, so a domain that is closed
with arrays alive is closed in C by whoever drops the last one.
"""

from __future__ import annotations

import os
import sys
import weakref
from _bisect import bisect_right, insort_right  # of `bisect`, whose import takes 0.1 ms more
from _thread import RLock
from typing import TYPE_CHECKING, Any, Protocol

from ofipy._base.arrays import np
from ofipy._base.binding import Text, check, ffi, lib
from ofipy._base.flags import Access
from ofipy._base.lifetime import Opening
from ofipy._discovery.domain import Domain
from ofipy._memory.owned import OwnedMemory
from ofipy._memory.remote import region_ways
from ofipy._requests import Hold, memory_freed

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Allocation", "DomainMemory", "MemoryDomain"]


class Allocation:
    """One region of allocated memory."""

    __slots__ = ("access", "address", "key", "length", "number", "remote_base", "ways")

    def __init__(
        self,
        *,
        number: int,
        key: int,
        remote_base: int,
        ways: bytes,
        address: int,
        length: int,
        access: Access,
    ) -> None:
        self.number = number
        """What records call it."""
        self.key = key
        """Remote key, 0 without remote access."""
        self.remote_base = remote_base
        """What peers add to offsets."""
        self.ways = ways
        """What devices call it beside that."""
        self.address = address
        self.length = length
        """Bytes."""
        self.access = access


class DomainMemory:
    """The regions that one domain allocated, and the end of the domain in C."""

    def __init__(self, pointer: Any, provider: str) -> None:
        self._pointer = pointer
        self._provider = provider
        self._pid = os.getpid()
        # Finalisers run anywhere, also inside the functions below: the lock is one that its holder may take
        # again.
        self._lock = RLock()
        self._starts: list[int] = []  # addresses of the regions, ascending
        self._allocations: dict[int, Allocation] = {}  # by address
        self._users: dict[int, weakref.ref[Any]] = {}  # what lives as long as an array of it, by address
        self._unclosed: list[int] = []  # C refused to close them yet
        self._domain_closed = False
        self.owned = OwnedMemory(pointer)
        """Of the program's own arrays."""

    def __bool__(self) -> bool:
        return bool(self._starts)

    def allocate(self, length: int, access: Access, counters: dict[str, Any]) -> npt.NDArray[np.uint8]:
        """New memory of `length` bytes, all zero, as a region of its own; `counters` as C has them.

        Raises
        ------
        NoMemory
            With the remedy, when the machine cannot back it.
        """
        attributes = ffi.new(
            "struct ofp_region_attr *", {"length": length, "access": access.value, **counters}
        )
        handle, text = ffi.new("struct ofp_region_handle *"), Text()
        with Opening(lambda: handle.id, lambda _: self._give_back(handle)) as opening:
            result = lib.ofp_region_allocate(self._pointer, attributes, handle, text.pointer, text.size)
            check(result, text=text, operation="empty", provider=self._provider)
            address = int(ffi.cast("uintptr_t", handle.base))
            ways = region_ways(self._pointer, handle, self._provider)
            with Hold(self._lock):
                # It is there still where Ctrl-C came up in the finaliser of an array that was there before.
                if address not in self._starts:
                    insort_right(self._starts, address)
                self._allocations[address] = Allocation(
                    number=handle.id,
                    key=handle.key,
                    remote_base=handle.remote_base,
                    ways=ways,
                    address=address,
                    length=length,
                    access=access,
                )
            start = ffi.cast("char *", handle.base)
            opening.owned = True
            memory = ffi.gc(start, lambda _: self._drop(address), length)
            self._users[address] = weakref.ref(memory)
        return np.frombuffer(ffi.buffer(memory, length), dtype=np.uint8)

    def _give_back(self, handle: Any) -> None:
        """An interrupted call has allocated it; maybe it was entered already."""
        address = int(ffi.cast("uintptr_t", handle.base))
        with Hold(self._lock):
            entered = address in self._allocations
            if not entered and address in self._starts:
                self._starts.remove(address)
        if entered:
            self._drop(address)
        else:
            lib.ofp_region_close(self._pointer, handle.id)

    def find(self, address: int, length: int) -> Allocation | None:
        """The region that holds `length` bytes at `address`; None when they are other memory."""
        with Hold(self._lock):
            # The last region that begins at or below the address is the only one that can hold it.
            index = bisect_right(self._starts, address) - 1
            if index < 0:
                return None
            found = self._allocations[self._starts[index]]
        return found if address - found.address + length <= found.length else None

    def _drop(self, address: int) -> None:
        """The last user of a region is gone."""
        # At the end of the interpreter a daemon thread may have stopped for good while it held the lock.
        if sys.is_finalizing() or os.getpid() != self._pid:
            return
        with Hold(self._lock):
            allocation = self._allocations.get(address)
            if allocation is None:
                return
            # First, so that what Ctrl-C leaves undone is found by close_domain; closing again does no harm.
            self._close_region(allocation.number)
            self._users.pop(address, None)
            if address in self._starts:
                self._starts.remove(address)
            del self._allocations[address]
            memory_freed()  # what is allocated there next has another number
            if self._domain_closed and not self._starts and not self._unclosed:
                lib.ofp_domain_retire(self._pointer)

    def _close_region(self, number: int) -> None:
        # Refused while a raw operation uses it, or from a thread that is not the domain's.
        if lib.ofp_region_close(self._pointer, number) not in (0, -lib.OFP_ENOREGION):
            self._unclosed.append(number)

    def close_domain(self, pointer: Any) -> None:
        """Close the domain in C, now or when the last array is gone."""
        self.owned.close()
        with Hold(self._lock):
            # Ctrl-C may have come up in the finaliser of an array.
            for address in list(self._allocations):
                if address not in self._users or not self._users[address]():
                    self._drop(address)
            unclosed, self._unclosed = self._unclosed, []
            for number in unclosed:
                self._close_region(number)
            if not self._starts:
                check(lib.ofp_domain_retire(pointer), operation="close a domain", provider=self._provider)
            self._domain_closed = True


class MemoryDomain(Domain, Protocol):
    """A domain, as those see it that move memory."""

    _memory: DomainMemory
