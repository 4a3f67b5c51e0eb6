# SPDX-License-Identifier: BSD-3-Clause
"""Event queues: what happens to peers, beside the operations (fi_eq(3))."""

from __future__ import annotations

import errno as codes
import time
from collections.abc import AsyncIterator, Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from ofipy._base.binding import check, drain_log, failure, ffi, lib, nanoseconds
from ofipy._base.contents import plain_bytes
from ofipy._base.errors import FabricError, TimedOut
from ofipy._base.lifetime import Handle, Opening
from ofipy._base.limits import UINT32_MAX, UINT64_MAX, limit, whole_number
from ofipy._base.record import Record
from ofipy._discovery.av import PEER_UNKNOWN
from ofipy._discovery.domain import Child, D

if TYPE_CHECKING:
    from ofipy._completion.aio import Watch

__all__ = ["Event", "EventKind", "EventQueue"]

Made = TypeVar("Made")


class EventKind(IntEnum):
    """What happened."""

    USER = lib.OFP_EVENT_USER
    """Written by the program."""
    PEER_UP = lib.OFP_EVENT_PEER_UP
    """A peer can be reached."""
    PEER_LOST = lib.OFP_EVENT_PEER_LOST
    """A peer cannot be reached any longer."""
    CONNREQ = lib.OFP_EVENT_CONNREQ
    """Somebody asks for a connection; `handle` names the request, `data` is what it said."""
    CONNECTED = lib.OFP_EVENT_CONNECTED
    """A connection is there, or with `error` not; `data` is what the other side said."""
    SHUTDOWN = lib.OFP_EVENT_SHUTDOWN
    """The other side closed the connection; with `error` it broke."""
    DEVICE = lib.OFP_EVENT_DEVICE
    """The domain's device has changed: `data` says what, `error` is what operations end with that suffer from it."""


class Event(Record, kw_only=True):
    """One event."""

    kind: EventKind = EventKind.USER
    endpoint: int = 0
    """Id of the endpoint or listener concerned, 0: none."""
    peer: int = PEER_UNKNOWN
    """Index in the endpoint's address vector, or PEER_UNKNOWN."""
    error: int = 0
    """Positive errno or a code of ofipy's own, 0: none."""
    provider_error: int = 0
    context: int = 0
    """The program's, 64 bits."""
    handle: int = 0
    """Of a connection request; of a peer that came up or was lost its :attr:`incarnation`."""
    data: bytes = b""
    """What came with it, up to 512 bytes."""

    @property
    def incarnation(self) -> int:
        """Of PEER_UP the incarnation that began, of PEER_LOST the one that is over; 0: the peer was not up."""
        return self.handle if self.kind in (EventKind.PEER_UP, EventKind.PEER_LOST) else 0

    @property
    def exception(self) -> FabricError | None:
        """The exception that it stands for, None without an error."""
        if not self.error:
            return None
        return failure(
            self.error,
            operation=self.kind.name.lower(),
            provider_error=self.provider_error,
            text=self.data.decode(errors="replace") if self.kind is EventKind.DEVICE else None,
        )


_NUMBERS = {
    "kind": (0, UINT32_MAX),
    "endpoint": (0, UINT32_MAX),
    "peer": (0, UINT32_MAX),
    "error": (-(2**31), 2**31 - 1),
    "provider_error": (-(2**31), 2**31 - 1),
    "context": (0, UINT64_MAX),
    "handle": (0, UINT64_MAX),
}


class EventQueue(Child[D]):
    """Takes events of the endpoints that were made with ``domain.endpoint(eq=…)``. Made by :meth:`Domain.event_queue`.

    :mod:`select` takes it as it is. The events of the core are never lost.
    """

    __slots__ = ("_taken", "_watches")

    _warns = False  # its domain does

    def __init__(self, domain: D, *, size: int | None = None) -> None:
        provider = domain.provider
        result = ffi.new("struct ofp_eq **")
        attributes = ffi.new("struct ofp_eq_attr *", {"size": limit("size", size, of="events")})
        with Opening(lambda: result[0], lib.ofp_eq_retire, lib.ofp_eq_free) as opening:
            opened = lib.ofp_eq_open(domain._pointer("event_queue"), attributes, result)
            check(opened, operation="event_queue", provider=provider)
            self._domain = domain
            self._watches: dict[int, Watch] = {}  # by id of the event loop
            self._taken: list[Event] = []

            def close(pointer: Any) -> None:
                check(lib.ofp_eq_retire(pointer), operation="close an event queue", provider=provider)

            self._own(Handle(opening.hold(), close, (domain._core,), "event queue", opening=opening))

    def read(self) -> Event | None:
        """Make progress, then take the oldest event; None when there is none."""
        if not self._taken:
            self._take()
        if not self._taken:
            return None
        event = self._taken[0]
        # Python runs no signal handler from here to the caller's next instruction.
        del self._taken[0]
        return event

    def peek(self) -> Event | None:
        """As :meth:`read`, but the event stays."""
        if self._taken:
            return self._taken[0]
        record, data = _room()
        found = lib.ofp_eq_peek(self._pointer("peek"), record, data)
        check(found, operation="peek", provider=self._domain.provider)
        return _event(record, data) if found else None

    def wait(self, timeout: float | None = None) -> Event:
        """Wait for an event and take it.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None: for ever.

        Raises
        ------
        TimedOut
            When the time is over.
        Canceled
            When the queue is closed meanwhile.
        """
        return self._wait_for(lambda event: event, timeout)

    def _wait_for(self, make: Callable[[Event], Made], timeout: float | None) -> Made:
        """Wait for an event and take what is made of it. Whoever is interrupted before that leaves the event."""
        while True:
            while not self._taken:
                self._wait(timeout)
                self._take()
            event = self._taken[0]
            try:
                made = make(event)
            except FabricError:
                # Left at the front it would keep those behind it from being read.
                self._forget(event)
                raise
            # As in read(). Another thread may have been quicker.
            if self._taken and self._taken[0] is event:
                del self._taken[0]
                return made

    def _forget(self, event: Event) -> None:
        if self._taken and self._taken[0] is event:
            del self._taken[0]

    def _take(self) -> None:
        """Move the oldest event from C to here, where an interrupted call leaves it for the next one."""
        record, data = _room()
        record.kind = _NOTHING
        try:
            found = lib.ofp_eq_read(self._pointer("read"), record, data)
            check(found, operation="read", provider=self._domain.provider)
            if found:
                event = _event(record, data)
                self._taken += [event]
                record.kind = _NOTHING  # no call since: it was not moved twice
        except BaseException:
            if record.kind != _NOTHING:
                self._taken += [_event(record, data)]
            raise

    def _wait(self, timeout: float | None) -> None:
        """Wait until there is an event, which stays."""
        provider = self._domain.provider
        expired = ffi.new("bool *")
        left = nanoseconds(timeout)
        deadline = time.monotonic_ns() + left
        while True:
            result = lib.ofp_eq_await(self._pointer("wait"), left, expired)
            if result == 1:
                return
            if result < 0 and result != -codes.EINTR:
                raise failure(result, operation="wait", provider=provider)
            if lib.ofp_log_waiting():
                drain_log()
            if timeout is not None:
                left = max(deadline - time.monotonic_ns(), 0)
                # Nothing may mean the end of a round alone, which lasts a second at most.
                if expired[0] or (left == 0 and result == 0):
                    raise TimedOut(f"no event within {timeout:g} s", operation="wait", provider=provider)

    async def next(self) -> Event:
        """Await an event and take it; cancelling this loses none.

        Raises
        ------
        Closed, Canceled
            When the queue is closed meanwhile, the latter by another thread during a look.
        """
        import asyncio

        from ofipy._completion.aio import Watch

        while (event := self.read()) is None:
            if self.arm():
                await Watch.of(self._watches, self.fileno()).readable()
            else:
                # There is an event, or an endpoint that neither works nor sleeps.
                await asyncio.sleep(0)
        return event

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Await events for ever: ``async for event in eq``."""
        while True:
            yield await self.next()

    def write(self, event: Event) -> None:
        """Write an event of the program's own.

        Raises
        ------
        Again
            When the queue is full.
        MessageTooLong
            When its data are longer than 512 bytes.
        """
        fields = {
            name: whole_number(name, getattr(event, name), *range, operation="write")
            for name, range in _NUMBERS.items()
        }
        data = plain_bytes(event.data, "write")
        record = ffi.new("struct ofp_event *", {**fields, "data_length": len(data)})
        written = lib.ofp_eq_write(self._pointer("write"), record, data)
        check(written, operation="write", provider=self._domain.provider)

    def fileno(self) -> int:
        """The descriptor to sleep on; it stays the queue's. Sleep only when :meth:`arm` said so."""
        number = lib.ofp_eq_fileno(self._pointer("fileno"))
        return check(number, operation="fileno", provider=self._domain.provider)

    def arm(self) -> bool:
        """Whether it is safe to sleep on the descriptor; if not, read first (fi_trywait(3))."""
        armed = lib.ofp_eq_arm(self._pointer("arm"))
        return bool(check(armed, operation="arm", provider=self._domain.provider))

    def _closing(self) -> None:
        for watch in list(self._watches.values()):
            watch.stop()

    def __repr__(self) -> str:
        return f"<EventQueue of {self._domain.provider}{' closed' if self.closed else ''}>"


_NOTHING = UINT32_MAX  # the kind of no event


def _room() -> tuple[Any, Any]:
    return ffi.new("struct ofp_event *"), ffi.new("char[]", lib.OFP_EVENT_DATA_MAX)


def _event(record: Any, data: Any) -> Event:
    numbers = {name: int(getattr(record, name)) for name in _NUMBERS if name != "kind"}
    return Event(kind=EventKind(record.kind), data=bytes(ffi.buffer(data, record.data_length)), **numbers)
