# SPDX-License-Identifier: BSD-3-Clause
"""The methods that our classes offer, for tests that look at every one."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import ofipy
from ofipy._operations import atomics, messaging, rma

__all__ = ["function_behind", "methods"]


def function_behind(member: Any) -> Any:
    """The function in Python that a method in C begins, which has the annotations; anything else as it is."""
    if inspect.ismethoddescriptor(member) and getattr(member, "__objclass__", None) is ofipy.Endpoint:
        modules = (messaging, rma, atomics)
        return next(getattr(each, member.__name__) for each in modules if hasattr(each, member.__name__))
    return member


def methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Names and functions of a class, inherited ones with them."""
    for name, member in inspect.getmembers(kind, inspect.isroutine):
        function = function_behind(member)
        if inspect.isfunction(function):
            yield name, function
