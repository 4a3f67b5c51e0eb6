# SPDX-License-Identifier: BSD-3-Clause
"""What C has opened and no :class:`~ofipy._base.lifetime.Handle` owns yet."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ofipy._base.binding import ffi
from ofipy._requests import CoreMemory

__all__ = ["Opening"]


class Opening:
    """The time between a C object's opening and its handle: Ctrl-C in between leaves nothing that nobody owns.

    Parameters
    ----------
    find : callable
        What C has opened, or something false before it has.
    close : callable
        Called with that when an exception comes up before a handle owns it.
    free : callable, optional
        Frees what was closed; of no effect before. Some objects have no memory apart.
    """

    __slots__ = ("close", "find", "free", "memory", "owned")

    def __init__(
        self,
        find: Callable[[], Any],
        close: Callable[[Any], object],
        free: Callable[[Any], None] | None = None,
    ) -> None:
        self.find = find
        self.close = close
        self.free = free
        self.memory: CoreMemory | None = None  # frees with the last reference to it
        self.owned = False  # set right behind what makes the handle known, with no call in between

    def hold(self) -> Any:
        """What C has opened, as a pointer that keeps the memory.

        The garbage collector may end such a pointer before others that use the memory: those keep :attr:`memory`.
        """
        assert self.free is not None
        pointer = self.find()
        self.memory = CoreMemory(pointer, self.free)
        return ffi.gc(pointer, self.memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or self.owned:
            return
        opened = self.find()
        if opened:
            self.close(opened)
            # What keeps the memory frees it later. If it was dropped before it was stored, it has freed nothing.
            if self.free is not None and self.memory is None:
                self.free(opened)
