# SPDX-License-Identifier: BSD-3-Clause
"""Starting collectives of a group, at once or prepared, and their requests."""

from __future__ import annotations

import errno as codes
from typing import TYPE_CHECKING, Any, Protocol

from ofipy._base.binding import ffi, lib
from ofipy._base.errors import Again, Closed, FabricError, TimedOut
from ofipy._completion.request import PreparedRequest, Request
from ofipy._memory.buffers import LocalMemory
from ofipy._requests import loop_is_running

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import TypeVar

    T = TypeVar("T", covariant=True, default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T", covariant=True)

__all__ = ["Call", "CollectiveRequest", "Members", "T", "prepare_call", "start_call"]

_NOTHING = LocalMemory(0, 0, 0, None, 0, None)
_NOT_YET = (-codes.EAGAIN, -codes.EINTR)


class Members(Protocol):
    """A group."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def endpoint(self) -> Any: ...
    @property
    def _address(self) -> int: ...
    def _pointer(self, operation: str) -> Any: ...
    def _refusal(self, code: int, operation: str, provider_error: int = 0) -> FabricError: ...


def _time_out(request: Any, timeout: float) -> TimedOut:
    """Says which call of the group it is, and whom it waits for."""
    state = ffi.new("struct ofp_collective_state *")
    text = f"not finished within {timeout:g} s"
    if not lib.ofp_collective_query(request._handle, state) and state.awaited_count:
        ranks = ", ".join(map(str, state.awaited[0 : min(state.awaited_count, len(state.awaited))]))
        more = " and others" if state.awaited_count > len(state.awaited) else ""
        what = "agreement" if state.kind == lib.OFP_COLLECTIVE_AGREEMENT else "call"
        text += f": {what} {state.sequence} of the group waits for rank {ranks}{more}"
    return TimedOut(
        text,
        remedy="every member of the group has to make this call; it goes on: wait again",
        **request._context(),
    )


class CollectiveRequest(Request[T]):
    """A collective under way, or finished; :meth:`wait` and ``await`` return what this rank gets.

    That is the array in which the result is, or the object; None at a rank that gets nothing. A time-out, Ctrl-C or a
    cancelled task leave it running, since the other members rely on it, and its memory in use.
    """

    __slots__ = ("_group", "_name", "_value")

    _group: Members
    _name: str
    _value: Any

    if TYPE_CHECKING:

        def wait(self, timeout: float | None = None) -> T: ...

        def __await__(self) -> Generator[Any, None, T]: ...

    @property
    def _operation(self) -> str:
        return getattr(self, "_name", "collective")

    def _context(self) -> dict[str, Any]:
        context = super()._context()
        context.pop("peer", None)
        return context

    def _result(self) -> T:
        if self._error:
            raise self._group._refusal(self._error, self._name, self._provider_error)
        super()._result()
        return self._finished_value()

    def _finished_value(self) -> T:
        # A request that C has started has no `_value`.
        return getattr(self, "_value", self._fetched)  # type: ignore[no-any-return]

    def _timed_out(self, timeout: float) -> Any:
        raise _time_out(self, timeout)

    @property
    def counts(self) -> list[int] | None:
        """With ``"ask"`` in place of counts: elements of each rank's block. None: without, or if the rank gets nothing.

        Raises
        ------
        TimedOut
            When the collective has not finished yet.
        FabricError
            When it has failed.
        """
        return None

    def cancel(self) -> bool:
        """Return False: the other members rely on it. Closing the group ends it."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._operation} {self._state(False)}>"


class PreparedCollective(PreparedRequest):
    """A collective that is prepared once and started many times."""

    __slots__ = ("_group", "_name", "_value")

    _group: Members
    _name: str
    _value: Any

    @property
    def _operation(self) -> str:
        return getattr(self, "_name", "collective")

    def _context(self) -> dict[str, Any]:
        context = super()._context()
        context.pop("peer", None)
        return context

    def _result(self) -> Any:
        if self._error:
            raise self._group._refusal(self._error, self._name, self._provider_error)
        return super()._result()

    def _timed_out(self, timeout: float) -> Any:
        raise _time_out(self, timeout)

    def _not_started(self, error: int) -> FabricError:
        if error == -codes.ECANCELED:
            return Closed("the group of this prepared collective is closed", operation=self._operation)
        return self._group._refusal(-error, self._operation)

    def cancel(self) -> bool:
        """Return False, as of :class:`CollectiveRequest`."""
        return False


class Call:
    """One collective as C takes it, and what it keeps alive.

    Parameters
    ----------
    name : str
        Of the method.
    kind : int
        ``OFP_COLLECTIVE_…``.
    value
        What the request's ``wait()`` returns.
    """

    __slots__ = ("keep", "name", "record", "value")

    def __init__(
        self,
        name: str,
        kind: int,
        value: Any = None,
        *,
        count: int = 0,
        source: LocalMemory = _NOTHING,
        target: LocalMemory = _NOTHING,
        root: int = 0,
        op: int = 0,
        datatype: int = lib.OFP_UINT8,
        source_counts: Any = None,
        target_counts: Any = None,
        sized: Any = None,
    ) -> None:
        varies = source_counts is not None or target_counts is not None
        flags = lib.OFP_COLLECTIVE_SIZED if sized is not None else lib.OFP_COLLECTIVE_VECTOR if varies else 0
        self.name = name
        self.value = value
        self.record = ffi.new(
            "struct ofp_collective *",
            {
                "kind": kind,
                "root": root,
                "atomic_op": op,
                "datatype": datatype,
                "flags": flags,
                "count": count,
                "source": source.offset,
                "source_region": source.region,
                "target": target.offset,
                "target_region": target.region,
                "source_counts": ffi.NULL if source_counts is None else source_counts,
                "target_counts": ffi.NULL if target_counts is None else target_counts,
                "result": ffi.NULL if sized is None else sized,
            },
        )
        self.keep = (source.keep, target.keep, source_counts, target_counts, sized)


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def _describe(request: Any, group: Members, call: Call) -> Any:
    request._group, request._name, request._value = group, call.name, call.value
    return request


def start_call(group: Members, call: Call, kind: type[Any] = CollectiveRequest) -> Any:
    """Start the group's next collective.

    Raises
    ------
    Again
        When an event loop runs, and as many collectives of the group run as may.
    Closed, GroupBroken, CollectiveMismatch, InvalidArgument, NoMemory
        When it cannot be started; the group has no such collective from this member then.
    """
    pointer = _address(group._pointer(call.name))
    endpoint = group.endpoint
    looping = loop_is_running()
    while True:
        started = endpoint._poster.collective(
            endpoint, kind, pointer, _address(call.record), call.keep, 0 if looping else -1
        )
        if type(started) is not int:
            return _describe(started, group, call)
        if started not in _NOT_YET:
            raise group._refusal(-started, call.name)
        if looping:
            raise Again(
                "as many collectives of this group run as may",
                operation=call.name,
                remedy="await those that were started before",
            )


def prepare_call(group: Members, call: Call) -> PreparedRequest:
    """Prepare a collective: each start is the group's next one.

    Raises
    ------
    FabricError
        As of :func:`start_call`.
    """
    endpoint = group.endpoint
    prepared = endpoint._poster.collective(
        endpoint,
        PreparedCollective,
        _address(group._pointer(call.name)),
        _address(call.record),
        call.keep,
        None,
    )
    if type(prepared) is int:
        raise group._refusal(-prepared, call.name)
    return _describe(prepared, group, call)  # type: ignore[no-any-return]
