# SPDX-License-Identifier: BSD-3-Clause
"""A call that travels to a worker, and its outcome that travels back.

Both are pickled. What can fail there fails the call and nothing else: a function or an argument that cannot be pickled,
one that the worker cannot read, a result or an exception that cannot travel back.
"""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

__all__ = ["Call", "InitializerFailed", "RemoteTraceback", "call_name", "failure_of", "run", "unwrap"]

Call = tuple[bytes | None, Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""The pickled initializer with its arguments, if the worker has not run it yet; the function; its arguments."""
Outcome = tuple[bool, Any]
"""True and a result, or False and a :class:`Failure`."""


class RemoteTraceback(Exception):
    """The cause of an exception that a task has raised: its text is the traceback in the worker."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class InitializerFailed(Exception):
    """The initializer of an executor has raised an exception in a worker."""


class Failure:
    """An exception on its way from a worker, with its traceback as text."""

    def __init__(self, error: BaseException, text: str) -> None:
        self.error = error
        self.text = text

    def unwrap(self) -> BaseException:
        """The exception, with the traceback as its cause."""
        self.error.__cause__ = RemoteTraceback(self.text)
        return self.error


def failure_of(error: BaseException) -> Failure:
    """What a worker sends of an exception.

    An exception that cannot be pickled, or not be read again, is replaced by one that says what it was.
    """
    text = "".join(traceback.format_exception(error))
    try:
        # Many a class pickles and cannot be read: its __init__ wants other arguments than Exception has stored.
        pickle.loads(pickle.dumps(error))
    except Exception as reason:
        kind = type(error).__qualname__
        error = pickle.PicklingError(
            f"the task has raised {kind}: {error}; that exception cannot be pickled: {type(reason).__name__}: {reason}"
        )
    return Failure(error, text)


def run(call: Call, initialize: Callable[[bytes], None]) -> Any:
    """Run a call in a worker.

    Parameters
    ----------
    call : Call
        As it was received.
    initialize : callable
        Called with the pickled initializer before the function.

    Raises
    ------
    InitializerFailed
        When the initializer has raised an exception, its cause.
    BaseException
        What the function raises.
    """
    initializer, function, arguments, keywords = call
    if initializer is not None:
        try:
            initialize(initializer)
        except Exception as error:
            raise InitializerFailed(f"the initializer has raised {type(error).__name__}: {error}") from error
    return function(*arguments, **keywords)


def unwrap(outcome: Outcome) -> Any:
    """The result of a call, from what the worker sent.

    Raises
    ------
    BaseException
        What the call has raised.
    """
    good, value = outcome
    if good:
        return value
    raise value.unwrap()


def call_name(function: Any, number: int) -> str:
    """What people call a task."""
    while hasattr(function, "func"):  # of functools.partial
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{name} (task {number})"
