# SPDX-License-Identifier: BSD-3-Clause
"""What C has opened and no :class:`~ofipy._base.lifetime.Handle` owns yet."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

__all__ = ["Opening"]


class Opening:
    """The time between a C object's opening and its handle: Ctrl-C in between leaves nothing that nobody owns.

    Parameters
    ----------
    find : callable
        What C has opened, or something false before it has.
    close : callable
        Called with that when an exception comes up before a handle owns it.
    """

    __slots__ = ("close", "find", "owned")

    def __init__(self, find: Callable[[], Any], close: Callable[[Any], object]) -> None:
        self.find = find
        self.close = close
        self.owned = False  # set right behind what makes the handle known, with no call in between

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not self.owned:
            opened = self.find()
            if opened:
                self.close(opened)
