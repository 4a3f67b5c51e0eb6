# SPDX-License-Identifier: BSD-3-Clause
"""Handles of what is opened in C, and the objects that own them."""

from typing import Any

from ofipy._lifetime import Handle, Resource


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
