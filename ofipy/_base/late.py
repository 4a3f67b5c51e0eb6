# SPDX-License-Identifier: BSD-3-Clause
"""Modules that are imported when something of them is first used.

``import ofipy`` reads the modules that ``open``, ``tsend`` and ``trecv`` need; each other one costs 0.1 ms and more. A
module that names a function of one of those names it through a :class:`Late`, beside the import that type checkers and
the tests of the layout see::

    if TYPE_CHECKING:
        from ofipy._operations import rma
    else:
        rma = Late("ofipy._operations.rma")

    class Endpoint:
        read = rma.read
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from ofipy._base.process_lock import ProcessLock

__all__ = ["Late", "late", "load"]

# Whoever forks waits for an import: the child has not the thread that would end it. Nothing that is imported so takes
# a lock while it is imported.
_lock = ProcessLock("late imports", held=True)


def load(name: str) -> ModuleType:
    """Import a module, unless it is imported already."""
    with _lock:
        return import_module(name)


class Late:
    """A module that is imported when a function or class of it is first called, or first looked up in a class.

    Parameters
    ----------
    name : str
        Of the module.
    """

    __slots__ = ("_found", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        return _Called(self, name) if self._found is None else getattr(self._found, name)

    def load(self) -> ModuleType:
        """The module."""
        if self._found is None:
            self._found = load(self._name)
        return self._found


def late(package: str, *names: str) -> Iterator[Late]:
    """Several modules of a package."""
    return (Late(f"{package}.{name}") for name in names)


class _Called:
    """A function or class of a module that is not imported yet."""

    __slots__ = ("_member", "_module", "_name", "_owner")

    def __init__(self, module: Late, name: str) -> None:
        self._module = module
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._member = owner, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return getattr(self._module.load(), self._name)(*arguments, **named)

    def __get__(self, instance: Any, kind: type) -> Any:
        function = getattr(self._module.load(), self._name)
        setattr(self._owner, self._member, function)  # from now on the class has the function itself
        return function.__get__(instance, kind)
