# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of arrays whose receivers do not know how much comes: ``counts="ask"``. The core allocates what comes."""

from __future__ import annotations

import errno as codes
from typing import Any, Final, Literal

from ofipy._base.arrays import np
from ofipy._base.binding import ffi, lib
from ofipy._base.errors import FabricError, InvalidArgument
from ofipy._operations.collective_calls import own_block
from ofipy._operations.collective_memory import Buffer, Counts, element_counts
from ofipy._operations.collective_start import Call, CollectiveRequest, Members, start_call

__all__ = ["Ask", "AskedRequest", "start_asked"]

Ask = Literal["ask"]
_ASK: Final = "ask"


class AskedRequest(CollectiveRequest[Any]):
    """A collective whose result is a new array, as long as what the members gave."""

    __slots__ = ("_counts", "_dtype", "_gets", "_made")

    _counts: list[int]
    _dtype: np.dtype[Any]
    _gets: bool
    _made: Any

    def _finished_value(self) -> Any:
        if not hasattr(self, "_made"):
            self._made = self._take() if self._gets else None
        return self._made

    def _take(self) -> Any:
        result, itemsize = self._value, self._dtype.itemsize
        lengths = [result.ends[rank + 1] - result.ends[rank] for rank in range(result.blocks)]
        for rank, length in enumerate(lengths):
            if length % itemsize:
                raise FabricError(
                    f"rank {rank} gave {length} bytes, no whole elements of {self._dtype}",
                    errno=codes.EBADMSG,
                    operation=self._name,
                )
        self._counts = [length // itemsize for length in lengths]
        if not result.length:
            return np.empty(0, self._dtype)
        # The array keeps the pointer, and with it the memory.
        memory = ffi.gc(ffi.cast("char *", result.memory), lambda _: lib.ofp_collective_result_free(result))
        return np.frombuffer(ffi.buffer(memory, result.length), self._dtype)

    @property
    def counts(self) -> list[int] | None:
        self.wait(timeout=0)
        return list(self._counts) if self._gets else None


def start_asked(
    group: Members,
    name: str,
    kind: int,
    a: Any,
    into: Any,
    *,
    asked: str,
    counts: Counts | None = None,
    root: int | None = None,
) -> AskedRequest:
    """Start a collective that allocates its result.

    Parameters
    ----------
    asked : str
        What the caller said in place of numbers; ``"ask"`` is meant.
    counts : sequence of int, optional
        Of alltoall: elements of each block of `a`. Without: equal blocks.
    root : int, optional
        The only one that gets the result. Default: all do.
    """
    if asked != _ASK:
        raise InvalidArgument(f"{asked!r} in place of counts", operation=name, remedy='"ask" is meant')
    if into is not None:
        raise InvalidArgument(
            'into= beside "ask"', operation=name, remedy="the result is a new array, which wait() returns"
        )
    buffer = Buffer(a, group.endpoint.domain, False, name)
    blocks = None
    if kind == lib.OFP_COLLECTIVE_ALLTOALL:
        blocks = _block_lengths(group, buffer, counts, name)
    result = ffi.gc(ffi.new("struct ofp_collective_result *"), lib.ofp_collective_result_free)
    call = Call(
        name,
        kind,
        result,
        count=buffer.length,
        source=buffer.memory,
        root=root or 0,
        source_counts=blocks,
        sized=result,
    )
    request: AskedRequest = start_call(group, call, AskedRequest)
    request._dtype = np.dtype(np.uint8) if buffer.array is None else buffer.array.dtype
    request._gets = root is None or root == group.rank
    return request


def _block_lengths(group: Members, buffer: Buffer, counts: Counts | None, name: str) -> Any:
    """``uint64_t[size]``: bytes of each block that this member gives."""
    blocks = None if counts is None else element_counts(counts, group.size, buffer.itemsize, name)
    own, _ = own_block(group, buffer, blocks, name)
    return blocks if blocks is not None else element_counts([own] * group.size, group.size, 1, name)
