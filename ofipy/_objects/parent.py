# SPDX-License-Identifier: BSD-3-Clause
"""What endpoints, receive contexts and listeners need of their domain, which makes them and so is above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ofipy._base.flags import Access
from ofipy._completion.counter import Counter, RegionClass
from ofipy._completion.cq import CompletionQueue
from ofipy._completion.eq import EventQueue
from ofipy._discovery.av import AddressVector
from ofipy._memory.allocation import MemoryDomain
from ofipy._memory.region import Region

__all__ = ["P", "Parent"]


class Parent(MemoryDomain, Protocol):
    """A domain that makes queues, vectors and regions."""

    @property
    def fabric(self) -> Any: ...

    def cq(self) -> CompletionQueue: ...

    def av(self) -> AddressVector: ...

    def event_queue(self) -> EventQueue: ...

    def register(
        self,
        buffer: Memory,
        *,
        access: Access | str | Iterable[Access | str] = ...,
        key: int | None = ...,
        counters: Mapping[RegionClass, Counter] | None = ...,
    ) -> Region: ...

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike = "uint8",
        *,
        access: Access | str | Iterable[Access | str] = ...,
        counters: Mapping[RegionClass, Counter] | None = ...,
    ) -> npt.NDArray[Any]: ...


if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import TypeVar

    from ofipy._memory.accepted import Memory

    P = TypeVar("P", bound=Parent, default=Any)  # as D of the storeys below
else:
    from typing import TypeVar

    P = TypeVar("P")
