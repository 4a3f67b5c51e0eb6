# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of an object of C's when an exception comes up before a handle owns it."""

from __future__ import annotations

import gc

import pytest

from ofipy._base.binding import ffi
from ofipy._base.opening import Opening


class Opened:
    """An object of C's: closed once, and then freed once."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.pointer = ffi.cast("void *", 1)

    def close(self, pointer: object) -> None:
        assert pointer
        self.done.append("closed")

    def free(self, pointer: object) -> None:
        assert pointer
        # As C does: before the close this has no effect.
        if "closed" in self.done:
            self.done.append("freed")


@pytest.mark.parametrize("when", ["before it is held", "as it is held", "behind that"])
def test_an_interrupt_leaves_nothing(when: str) -> None:
    opened = Opened()

    def interrupted() -> None:
        with Opening(lambda: opened.pointer, opened.close, opened.free) as opening:
            if when == "before it is held":
                raise KeyboardInterrupt
            pointer = opening.hold()
            if when == "as it is held":
                del pointer
                opening.memory = None
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    gc.collect()
    assert opened.done == ["closed", "freed"]


def test_what_has_an_owner_is_the_owner_s() -> None:
    opened = Opened()

    def interrupted() -> None:
        with Opening(lambda: opened.pointer, opened.close, opened.free) as opening:
            opening.hold()
            opening.owned = True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert opened.done == []


def test_what_was_not_opened_is_not_closed() -> None:
    opened = Opened()
    with pytest.raises(KeyboardInterrupt), Opening(lambda: ffi.NULL, opened.close, opened.free):
        raise KeyboardInterrupt
    assert opened.done == []
