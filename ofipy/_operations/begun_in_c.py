# SPDX-License-Identifier: BSD-3-Clause
"""Methods that begin in C and go on to a function in Python: what C says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["begin_methods_in_c", "method_text"]

_K = TypeVar("_K")


def begin_methods_in_c(
    make: Callable[[type, int, Callable[..., Any], str], Any], functions: Mapping[int, Callable[..., Any]]
) -> Callable[[type[_K]], type[_K]]:
    """A decorator of classes whose methods begin in C, which goes on to these functions where it must.

    Parameters
    ----------
    make : callable
        What makes such a method: of ``ofipy._requests``.
    functions : mapping
        By the number of the operation. The methods have their names, signatures and documentation.
    """

    def decorate(kind: type[_K]) -> type[_K]:
        for op, function in functions.items():
            setattr(kind, function.__name__, make(kind, op, function, method_text(function)))
        return kind

    return decorate


def method_text(function: Callable[..., Any]) -> str:
    """Signature and documentation of a method, as a method of C has them: those of the function."""
    return f"{function.__name__}({_parameters(function)})\n--\n\n{function.__doc__ or ''}"


def _parameters(function: Callable[..., Any]) -> str:
    """The parameters of a method as C's documentation has them, without annotations; `inspect` takes long to import."""
    code, named = function.__code__, function.__kwdefaults__ or {}
    taken = ["$self", *code.co_varnames[1 : code.co_argcount]]
    defaults = function.__defaults__ or ()
    for place, value in enumerate(defaults, len(taken) - len(defaults)):
        taken[place] += f"={value!r}"
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    only = [f"{name}={named[name]!r}" if name in named else name for name in keywords]
    return ", ".join((*taken, *(("*", *only) if only else ())))
