# SPDX-License-Identifier: BSD-3-Clause
"""What C has opened and no :class:`~ofipy._base.lifetime.Handle` owns yet."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ofipy._base.binding import ffi

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

    __slots__ = ("close", "find", "free", "held", "owned")

    def __init__(
        self,
        find: Callable[[], Any],
        close: Callable[[Any], object],
        free: Callable[[Any], None] | None = None,
    ) -> None:
        self.find = find
        self.close = close
        self.free = free
        self.held: Any = None
        self.owned = False  # set right behind what makes the handle known, with no call in between

    def hold(self) -> Any:
        """What C has opened, as a pointer with which the memory goes."""
        assert self.free is not None
        self.held = ffi.gc(self.find(), self.free)
        return self.held

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
            # A pointer that holds it frees it later. One that was dropped before it was stored has freed nothing.
            if self.free is not None and self.held is None:
                self.free(opened)
