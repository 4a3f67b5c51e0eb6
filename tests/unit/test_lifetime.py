# SPDX-License-Identifier: BSD-3-Clause
"""Handles of what is opened in C, and the objects that own them."""

import threading
from typing import Any

import pytest

from ofipy._base.lifetime import Handle, Resource


class Owner(Resource):
    """Forgets itself when it is told that its C part goes."""

    __slots__ = ("others",)

    def __init__(self, handle: Handle, others: list[Resource]) -> None:
        self._own(handle)
        self.others = others

    def _closing(self) -> None:
        self.others.clear()


def test_an_owner_that_goes_while_its_handle_is_closed_closes_it_once() -> None:
    closed: list[Any] = []
    others: list[Resource] = []
    handle = Handle(object(), closed.append, (), "thing")
    others.append(Owner(handle, others))
    handle.close()
    assert len(closed) == 1
    assert not handle.is_open
    assert not others


class Slow:
    """A close that lasts until it is told to end."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Event(), threading.Event()
        self.order: list[str] = []
        self.root = Handle("root", self.close, (), "root")
        self.child = Handle("slow", self.close, (self.root,), "child")
        self.other = Handle("other", self.close, (self.root,), "child")
        self.thread = threading.Thread(target=self.child.close)
        self.thread.start()
        assert self.begun.wait(20)

    def close(self, pointer: Any) -> None:
        self.order.append(pointer)
        if pointer == "slow":
            self.begun.set()
            assert self.end.wait(20)

    def finish(self) -> None:
        self.end.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_a_slow_close_does_not_hold_up_another_tree() -> None:
    slow, closed = Slow(), []
    root = Handle(object(), closed.append, (), "root")
    Handle(object(), closed.append, (root,), "child")
    root.close()
    assert len(closed) == 2
    slow.finish()
    slow.root.close()


def test_a_finaliser_does_not_wait_for_a_slow_close() -> None:
    slow = Slow()
    owner = Owner(slow.other, [])
    with pytest.warns(ResourceWarning):
        del owner
    assert slow.order == ["slow"]
    slow.finish()
    assert slow.order == ["slow", "other"]
    slow.root.close()
    assert slow.order == ["slow", "other", "root"]


def test_a_close_within_the_close_of_another_tree_does_not_wait_for_a_third() -> None:
    slow = Slow()
    root = Handle(object(), lambda _: slow.other.close(), (), "root")
    root.close()  # would wait for the slow one, which may be waiting for this
    assert slow.order == ["slow"]
    slow.finish()
    assert slow.order == ["slow", "other"]
    slow.root.close()
