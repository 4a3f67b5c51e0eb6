# SPDX-License-Identifier: BSD-3-Clause
"""Counters: how many operations have finished, without an entry for any (fi_cntr(3))."""

import errno as codes
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ofipy._base.binding import check, drain_log, failure, ffi, lib, nanoseconds
from ofipy._base.errors import FabricError, InvalidArgument, NotSupported, TimedOut
from ofipy._base.flags import Access, Cap
from ofipy._base.lifetime import Handle, Opening, ProcessBound
from ofipy._base.limits import UINT64_MAX, whole_number
from ofipy._base.owner import check_owner
from ofipy._discovery.domain import Child, D, Domain

if TYPE_CHECKING:
    from ofipy._completion.aio_counter import Waits

__all__ = [
    "Counter",
    "CounterClass",
    "DeferredWork",
    "RegionClass",
    "counter_array",
    "counter_reaching",
    "counter_value",
    "defer",
    "new_work",
    "queue_work",
    "region_counters",
]

CounterClass = Literal["send", "recv", "read", "write", "remote_read", "remote_write"]

RegionClass = Literal["remote_read", "remote_write"]

_EVENTS = {"completions": lib.OFP_COUNTER_COMPLETIONS, "bytes": lib.OFP_COUNTER_BYTES}
_RIGHTS: dict[str, Access] = {"remote_read": Access.REMOTE_READ, "remote_write": Access.REMOTE_WRITE}
_CLASSES = {
    "send": lib.OFP_COUNTER_SEND,
    "recv": lib.OFP_COUNTER_RECV,
    "read": lib.OFP_COUNTER_READ,
    "write": lib.OFP_COUNTER_WRITE,
    "remote_read": lib.OFP_COUNTER_REMOTE_READ,
    "remote_write": lib.OFP_COUNTER_REMOTE_WRITE,
}


def counter_array(domain: Domain, counters: "Mapping[CounterClass, Counter] | None") -> list[Any]:
    """C's form of an endpoint's counters: a pointer for each class.

    Raises
    ------
    InvalidArgument
        For a class that does not exist, or a counter of another domain.
    Closed
        When one of them is closed.
    """
    pointers = [ffi.NULL] * lib.OFP_COUNTER_CLASSES
    for name, counter in (counters or {}).items():
        if name not in _CLASSES:
            raise InvalidArgument(f"counters[{name!r}]; known are {', '.join(_CLASSES)}")
        check_owner(domain, counter, f"counters[{name!r}]", "enable")
        pointers[_CLASSES[name]] = counter._pointer("enable")
    return pointers


def region_counters(
    domain: Domain, counters: "Mapping[RegionClass, Counter] | None", rights: Access, operation: str
) -> dict[str, Any]:
    """What counts in a region, as fields of ``struct ofp_region_attr``.

    Raises
    ------
    InvalidArgument
        For a class that does not exist, or that the rights of the region leave nothing to count for, or a counter of
        another domain.
    NotSupported
        When peers access memory without a trace.
    Closed
        When one of them is closed.
    """
    pointers: dict[str, Any] = {}
    for name, counter in (counters or {}).items():
        right = _RIGHTS.get(name)
        if right is None:
            known = ", ".join(_RIGHTS)
            raise InvalidArgument(f"counters[{name!r}] of a region; known are {known}", operation=operation)
        if not rights & right:
            raise InvalidArgument(
                f"counters[{name!r}] of a region that peers may not access so",
                operation=operation,
                remedy=f"add {name!r} to its access",
            )
        if not domain.info.caps & Cap.RMA_EVENT:
            raise NotSupported(
                f"counters[{name!r}]; peers access this memory without a trace",
                operation=operation,
                provider=domain.provider,
                remedy="choose a provider with the capability rma_event",
            )
        check_owner(domain, counter, f"counters[{name!r}]", operation)
        pointers[name] = counter._pointer(operation)
    return pointers


def counter_value(number: int, what: str) -> int:
    """A value or a threshold of a counter.

    Raises
    ------
    InvalidArgument
        When it does not fit 64 bits.
    """
    if not hasattr(number, "__index__"):
        raise InvalidArgument(f"{what}={number!r}; a whole number is meant, seconds are timeout=")
    return whole_number(what, number, 0, UINT64_MAX)


def counter_reaching(after: "tuple[Counter, int]", operation: str) -> "tuple[Counter, int]":
    """What work waits for: a counter, and a value of it.

    Raises
    ------
    InvalidArgument
        When it is something else.
    """
    if not isinstance(after, tuple) or len(after) != 2 or not isinstance(after[0], Counter):
        raise InvalidArgument(
            f"after={after!r}; a counter and a value of it are meant: (counter, 10)", operation=operation
        )
    return after[0], counter_value(after[1], "threshold")


class Counter(Child[D]):
    """Counts operations that finish; made by :meth:`Domain.counter`.

    With ``domain.endpoint(counters=…)`` it counts every operation of its class, also those that write no queue entry
    and those of requests; failed ones advance :attr:`errors` in place of :attr:`value`. With ``counters=`` of
    :meth:`Domain.register` and :meth:`Domain.empty` it counts what peers do to that memory. See fi_cntr(3), fi_mr(3).
    """

    __slots__ = ("_known", "_waits")

    _warns = False  # its domain does

    def __init__(self, domain: D, *, events: Literal["completions", "bytes"] = "completions") -> None:
        if events not in _EVENTS:
            raise InvalidArgument(f"events={events!r}; known are {', '.join(_EVENTS)}")
        provider = domain.provider
        result = ffi.new("struct ofp_counter **")
        attributes = ffi.new("struct ofp_counter_attr *", {"events": _EVENTS[events]})
        with Opening(lambda: result[0], lib.ofp_counter_retire, lib.ofp_counter_free) as opening:
            opened = lib.ofp_counter_open(domain._pointer("counter"), attributes, result)
            check(opened, operation="counter", provider=provider)
            self._domain = domain
            self._known = 0  # the error value that the program has seen
            self._waits: Waits | None = None  # while somebody awaits it

            def close(pointer: Any) -> None:
                check(lib.ofp_counter_retire(pointer), operation="close a counter", provider=provider)

            self._own(
                Handle(
                    opening.hold(),
                    close,
                    (domain._core,),
                    "counter",
                    opening=opening,
                )
            )

    @property
    def value(self) -> int:
        """Operations, or bytes, that have finished without error; makes progress."""
        return self._read(lib.ofp_counter_read)

    @property
    def errors(self) -> int:
        """Operations that have failed; makes progress."""
        self._known = self._read(lib.ofp_counter_read_error)
        return self._known

    def add(self, value: int, *, after: "tuple[Counter, int] | None" = None) -> "DeferredWork | None":
        """Add to the value, modulo 2**64.

        Parameters
        ----------
        value : int
            What is added.
        after : (Counter, int), optional
            Do it when that counter has reached this value.

        Returns
        -------
        DeferredWork or None
            What can be cancelled, with `after`.
        """
        if after is not None:
            return defer(self._domain, lib.OFP_WORK_COUNTER_ADD, after, self, counter_value(value, "value"))
        self._change(lib.ofp_counter_add, value, "add")
        return None

    def set(self, value: int, *, after: "tuple[Counter, int] | None" = None) -> "DeferredWork | None":
        """Replace the value; `after` and the result as of :meth:`add`."""
        if after is not None:
            return defer(self._domain, lib.OFP_WORK_COUNTER_SET, after, self, counter_value(value, "value"))
        self._change(lib.ofp_counter_set, value, "set")
        return None

    def add_error(self, value: int = 1) -> None:
        """Add to the error value, which ends every wait."""
        self._change(lib.ofp_counter_add_error, value, "add_error")

    def set_error(self, value: int) -> None:
        """Replace the error value; a change ends every wait."""
        self._change(lib.ofp_counter_set_error, value, "set_error")

    def wait(self, threshold: int, timeout: float | None = None) -> None:
        """Wait until :attr:`value` is at least `threshold`.

        Parameters
        ----------
        threshold : int
            Operations or bytes, as the counter counts.
        timeout : float, optional
            Seconds; None: for ever.

        Raises
        ------
        TimedOut
            When the time is over.
        FabricError
            When the value is below the threshold and operations have failed since the program last read
            :attr:`errors` or was told so here.
        Canceled
            When the counter is closed meanwhile.
        """
        threshold = counter_value(threshold, "threshold")
        provider = self._domain.provider
        # Failures that the program has been told of end no wait again.
        known, expired = self._known, ffi.new("bool *")
        left = nanoseconds(timeout)
        deadline = time.monotonic_ns() + left
        while True:
            result = lib.ofp_counter_wait(self._pointer("wait"), threshold, known, left, expired)
            if result == 1:
                return
            if result == 2:
                raise self._failed(self.errors, known, "wait")
            if result < 0 and result != -codes.EINTR:
                raise failure(result, operation="wait", provider=provider)
            if lib.ofp_log_waiting():
                drain_log()
            if timeout is not None:
                left = max(deadline - time.monotonic_ns(), 0)
                # Nothing may mean the end of a round alone, which lasts a second at most.
                if expired[0] or (left == 0 and result == 0):
                    text = f"the counter has not reached {threshold} within {timeout:g} s"
                    raise TimedOut(text, operation="wait", provider=provider)

    async def reached(self, threshold: int) -> None:
        """Return when :attr:`value` is at least `threshold`: ``await counter.reached(10)``.

        Any event loop's thread may wait. Cancelling it, as by :func:`asyncio.timeout`, changes nothing.

        Parameters
        ----------
        threshold : int
            Operations or bytes, as the counter counts.

        Raises
        ------
        FabricError
            As of :meth:`wait`.
        Canceled
            When the counter is closed meanwhile.
        """
        from ofipy._completion import aio_counter

        await aio_counter.reached(self, counter_value(threshold, "threshold"))

    def fileno(self) -> int:
        """The descriptor to sleep on; it stays the counter's. Sleep only when :meth:`arm` said so."""
        number = lib.ofp_counter_fileno(self._pointer("fileno"))
        return check(number, operation="fileno", provider=self._domain.provider)

    def arm(self, threshold: int) -> bool:
        """Whether it is safe to sleep on the descriptor until the value is `threshold`, or operations have failed.

        If not, look at both first (fi_trywait(3)). The descriptor may become readable before, when there is work to do:
        look, then arm again. One thread or loop sleeps at a time; :meth:`reached` is for many.
        """
        return self._arm(counter_value(threshold, "threshold"), self._known)

    def _arm(self, threshold: int, errors: int) -> bool:
        armed = lib.ofp_counter_arm(self._pointer("arm"), threshold, errors)
        return bool(check(armed, operation="arm", provider=self._domain.provider))

    def _failed(self, errors: int, known: int, operation: str) -> FabricError:
        return FabricError(
            f"the error value is {errors}, it was {known}",
            operation=operation,
            provider=self._domain.provider,
            remedy="the queue of the failed operations says why",
        )

    def _levels(self) -> tuple[int, int]:
        """Value and error value, without taking note of the latter."""
        return self._read(lib.ofp_counter_read), self._read(lib.ofp_counter_read_error)

    def _closing(self) -> None:
        if self._waits is not None:
            self._waits.end()

    def _read(self, read: Any) -> int:
        value = ffi.new("uint64_t *")
        check(read(self._pointer("read"), value), operation="read", provider=self._domain.provider)
        return int(value[0])

    def _change(self, change: Any, value: int, operation: str) -> None:
        number = counter_value(value, "value")
        check(change(self._pointer(operation), number), operation=operation, provider=self._domain.provider)

    def __repr__(self) -> str:
        state = "closed"
        if not self.closed:
            value, errors = self._read(lib.ofp_counter_read), self._read(lib.ofp_counter_read_error)
            state = f"at {value}, errors {errors}"
        return f"<Counter of {self._domain.provider} {state}>"


class DeferredWork(ProcessBound):
    """Work that waits for a counter.

    Made by :meth:`Domain.defer`, :meth:`Domain.defer_reduce` and :meth:`Counter.add`.
    """

    __slots__ = ("_domain", "_number")

    _instead = "defer work in the process of its domain"

    def __init__(self, domain: Domain, number: int) -> None:
        self._domain = domain
        self._number = number

    def cancel(self) -> bool:
        """End it before it starts; an operation has a completion that says so.

        Returns
        -------
        bool
            False: it has started already.
        """
        result = lib.ofp_work_cancel(self._domain._pointer("cancel"), self._number)
        if result == -codes.ENOENT:
            return False
        check(result, operation="cancel", provider=self._domain.provider)
        return True

    def __repr__(self) -> str:
        return f"<DeferredWork {self._number:#x} of {self._domain.provider}>"


def defer(
    domain: Domain,
    kind: int,
    after: tuple[Counter, int],
    target: Counter | None,
    value: int,
    record: Any = None,
) -> DeferredWork:
    """Queue work, from the bytes of an operation record when it is one."""
    work = new_work(domain, kind, after, target, "defer")
    work.value = value
    if record is not None:
        ffi.buffer(ffi.addressof(work, "operation"))[:] = record
    return queue_work(domain, work, "defer")


def new_work(
    domain: Domain, kind: int, after: tuple[Counter, int], target: Counter | None, operation: str
) -> Any:
    """Work that waits for a counter; what it does is to be filled in."""
    counter, threshold = counter_reaching(after, operation)
    check_owner(domain, counter, "after", operation)
    check_owner(domain, target, "completes", operation)
    work = ffi.new("struct ofp_deferred_work *")
    work.kind, work.counter, work.threshold = kind, counter._pointer(operation), threshold
    if target is not None:
        work.target = target._pointer(operation)
    return work


def queue_work(domain: Domain, work: Any, operation: str) -> DeferredWork:
    """Hand it to C."""
    number = ffi.new("uint64_t *")
    queued = lib.ofp_work_queue(domain._pointer(operation), work, number)
    check(queued, operation=operation, provider=domain.provider)
    return DeferredWork(domain, int(number[0]))
