# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose memory a transport may keep registered: those that tell before it goes.

A transport that registers memory would like to do so once, and not for each operation. Nobody tells it when memory is
given back and other memory appears at the same addresses; so it may only keep what has an owner that does. A numpy
array that owns its memory is one: it takes a weak reference, whose callback runs before the memory goes, and with one
it refuses to be resized. The region of an array is found by the array, never by an address.
"""

from __future__ import annotations

import os
import sys
import weakref
from _thread import RLock
from functools import partial
from typing import TYPE_CHECKING, Any

from ofipy._base.arrays import is_array, np
from ofipy._base.binding import ffi, lib
from ofipy._requests import Hold

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["OwnedMemory"]


class _Owned:
    """The memory of one array."""

    __slots__ = ("address", "length", "number", "owner")

    def __init__(self, owner: weakref.ref[npt.NDArray[Any]], number: Any, address: int, length: int) -> None:
        self.owner = owner
        self.number = number
        """``uint32_t *``: of the region; 0: the core made none."""
        self.address = address
        self.length = length
        """Bytes."""


class OwnedMemory:
    """The arrays of which a domain has made regions by itself."""

    def __init__(self, pointer: Any) -> None:
        self.above: int = lib.ofp_domain_keeps_above(pointer)
        """Of arrays with more bytes than this something is to be gained."""
        self._pointer = pointer
        self._pid = os.getpid()
        # Callbacks of weak references run anywhere, also inside the functions below: its holder may take it again.
        self._lock = RLock()
        self._owned: dict[int, _Owned] = {}  # by the id of the owner
        self._unclosed: list[int] = []  # C refused to close them yet

    def find(self, array: Any, address: int, length: int) -> tuple[int, int] | None:
        """The region of the array that owns these bytes of `array`, and where they are in it; None: there is none."""
        if not is_array(array):
            return None
        owner: Any = array
        while type(owner) is np.ndarray and owner.base is not None:
            owner = owner.base
        if type(owner) is not np.ndarray:
            return None
        entry = self._owned.get(id(owner))
        if entry is None or entry.owner() is not owner:
            entry = self._enter(owner)
        number, offset = entry.number[0], address - entry.address
        # What was made to begin or end beyond its owner's memory is nobody's.
        if not number or offset < 0 or offset + length > entry.length:
            return None
        return number, offset

    def _enter(self, owner: npt.NDArray[Any]) -> _Owned:
        key = id(owner)
        with Hold(self._lock):
            entry = self._owned.get(key)
            if entry is not None and entry.owner() is owner:
                return entry
            if entry is not None:
                self._close(entry.number[0])
            address = int(owner.__array_interface__["data"][0])
            reference = weakref.ref(owner, partial(self._leave, key))
            # Entered before C knows of it: whatever comes up in between, its number is found.
            entry = self._owned[key] = _Owned(reference, ffi.new("uint32_t *"), address, owner.nbytes)
            if owner.flags.owndata:
                lib.ofp_region_own(self._pointer, ffi.cast("void *", address), owner.nbytes, entry.number)
        return entry

    def _leave(self, key: int, owner: weakref.ref[npt.NDArray[Any]]) -> None:
        """The array goes, and its memory behind it."""
        # At the end of the interpreter a daemon thread may have stopped for good while it held the lock.
        if sys.is_finalizing() or os.getpid() != self._pid:
            return
        with Hold(self._lock):
            entry = self._owned.get(key)
            if entry is not None and entry.owner is owner:
                del self._owned[key]
                self._close(entry.number[0])

    def _close(self, number: int) -> None:
        # Refused from a thread that is not the domain's: nobody finds it any more.
        if number and lib.ofp_region_close(self._pointer, number) not in (0, -lib.OFP_ENOREGION):
            self._unclosed.append(number)

    def close(self) -> None:
        """Close all regions; the endpoints are closed."""
        with Hold(self._lock):
            self._unclosed += [entry.number[0] for entry in self._owned.values()]
            self._owned.clear()
            unclosed, self._unclosed = self._unclosed, []
            for number in unclosed:
                self._close(number)
