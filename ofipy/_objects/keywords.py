# SPDX-License-Identifier: BSD-3-Clause
"""Keyword arguments that several functions hand on to :class:`~ofipy.Endpoint`, and a misspelt one among them.

They are typed, so that a type checker refuses a misspelt one, and checked by the function that the program called, so
that the error names that function and what was probably meant.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

from ofipy._base.flags import Flag
from ofipy._completion.counter import Counter, CounterClass
from ofipy._completion.cq import CompletionQueue
from ofipy._completion.eq import EventQueue
from ofipy._discovery.av import AddressVector
from ofipy._objects.receive_context import ReceiveContext

__all__ = ["ConnectOptions", "EndpointOptions", "OpenOptions", "refuse_unknown"]


class OpenOptions(TypedDict, total=False):
    """What :func:`ofipy.open` hands on; the queues and other parts of an endpoint it makes itself."""

    complete: str | None
    tx_flags: Flag | str | None
    rx_flags: Flag | str | None
    tx_size: int | None
    unexpected_size: int | None
    min_multi_recv: int | None
    selective_completion: bool | Literal["transmit", "receive"]
    remote_events: bool
    traffic_class: int | None


class ConnectOptions(OpenOptions, total=False):
    """What :meth:`PassiveEndpoint.connect` hands on; the endpoint has the listener's service."""

    cq: CompletionQueue | None
    av: AddressVector | None
    rx: ReceiveContext | None
    send_cq: CompletionQueue | None
    eq: EventQueue | None
    counters: Mapping[CounterClass, Counter] | None


class EndpointOptions(ConnectOptions, total=False):
    """What :meth:`Domain.endpoint` and :meth:`ConnectionRequest.accept` hand on."""

    service: int | str | None


def refuse_unknown(function: Callable[..., Any], options: Mapping[str, Any], kind: type) -> None:
    """Raise when an option is none of those of `kind`, a TypedDict.

    Raises
    ------
    TypeError
        As Python does it, with the name that is nearest.
    """
    unknown = next((name for name in options if name not in kind.__annotations__), None)
    if unknown is None:
        return
    import difflib
    import inspect

    own = [
        each.name for each in inspect.signature(function).parameters.values() if each.kind != each.VAR_KEYWORD
    ]
    near = difflib.get_close_matches(unknown, [*own, *kind.__annotations__], n=1)
    raise TypeError(
        f"ofipy.{function.__qualname__}() got an unexpected keyword argument {unknown!r}"
        + (f"; did you mean {near[0]!r}?" if near else "")
    )
