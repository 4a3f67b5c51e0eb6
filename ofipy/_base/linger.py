# SPDX-License-Identifier: BSD-3-Clause
"""Linger: what was posted leaves before its endpoint closes, and what did not leave is told once.

C says whether an endpoint still has something that is to leave, and ends the rest. This module says for how long
several endpoints are asked, side by side under one deadline. It never sleeps: :meth:`Parting.rounds` yields pauses, and
who closes sleeps through them or awaits them. See docs/explanation/linger.md.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ofipy._base import config
from ofipy._base.binding import check, ffi, lib, logger, nanoseconds
from ofipy._base.errors import FabricError, NotSent

__all__ = ["CLOSE_TIMEOUT", "Departure", "Parting", "close_at_once", "warn_not_sent"]

# Seconds that closing an endpoint without linger may take to finish what the transport has begun.
CLOSE_TIMEOUT = 2.0

# Of the time to linger, the last part is for taking leave of the peers: a tenth, and seconds at most.
_FAREWELL = 0.5

# Seconds between two looks that found nothing.
_PAUSE_FIRST, _PAUSE_LONGEST = 0.00005, 0.001

_OPERATIONS = {
    lib.OFP_SEND: "send",
    lib.OFP_TSEND: "tsend",
    lib.OFP_WRITE: "write",
    lib.OFP_ATOMIC: "atomic",
    lib.OFP_FETCH_ATOMIC: "fetch_atomic",
    lib.OFP_COMPARE_ATOMIC: "compare_atomic",
    lib.OFP_BARRIER: "barrier",
    lib.OFP_BROADCAST: "broadcast",
    lib.OFP_ALLTOALL: "alltoall",
    lib.OFP_ALLREDUCE: "allreduce",
    lib.OFP_ALLGATHER: "allgather",
    lib.OFP_REDUCE_SCATTER: "reduce_scatter",
    lib.OFP_REDUCE: "reduce",
    lib.OFP_SCATTER: "scatter",
    lib.OFP_GATHER: "gather",
}


class Departure:
    """What the closing of one endpoint asks of C.

    Parameters
    ----------
    pointer
        What C calls the endpoint.
    domain
        What C calls its domain. Kept: C looks at the domain of an endpoint that is closed, too, and at the
        interpreter's end nobody else may keep that memory.
    provider : str
        Its name.
    name_peer : callable
        Makes a URI of a peer's raw address.
    """

    __slots__ = ("_domain", "_name_peer", "_pointer", "_told", "patience", "provider")

    def __init__(self, pointer: Any, domain: Any, provider: str, name_peer: Callable[[bytes], str]) -> None:
        self._pointer = pointer
        self._domain = domain
        self._name_peer = name_peer
        self._told = False
        self.provider = provider
        self.patience = CLOSE_TIMEOUT
        """Seconds that :meth:`close` may take."""

    def waits(self) -> bool:
        """Whether any operation that was posted is still to leave."""
        # An error says that it is closed, or another thread's: there is nothing to wait for here.
        return bool(lib.ofp_endpoint_linger(self._pointer, 0) > 0)

    def lingers(self) -> bool:
        """Refuse new operations; whether any that was posted is still to leave."""
        return bool(lib.ofp_endpoint_linger(self._pointer, 1) > 0)

    def drains(self) -> bool:
        """Let the transport's queues run empty; whether they have not yet."""
        return bool(lib.ofp_endpoint_drain(self._pointer) > 0)

    def close(self, pointer: Any) -> None:
        """End the rest, and the endpoint; the handle of the endpoint calls this."""
        result = lib.ofp_endpoint_retire(pointer, int(self.patience * 1e9))
        check(result, operation="close an endpoint", provider=self.provider)

    def unsent(self) -> Any:
        """C's record of what has not left; None: another thread is in the domain."""
        record = ffi.new("struct ofp_unsent *")
        return record if lib.ofp_endpoint_unsent(self._pointer, record) == 0 else None

    def take_unsent(self) -> Any:
        """The same for whoever tells it, which happens once; None afterwards."""
        told, self._told = self._told, True
        return None if told else self.unsent()

    def peers(self, count: int) -> Iterator[str]:
        """URIs of the peers that a record counts."""
        for number in range(count):
            room, length = ffi.new("char[]", lib.OFP_ADDRESS_MAX), ffi.new("size_t *", lib.OFP_ADDRESS_MAX)
            if lib.ofp_endpoint_unsent_peer(self._pointer, number, room, length) == 0:
                yield self._name_peer(bytes(ffi.buffer(room, length[0])))


def close_at_once(pointer: Any) -> None:
    """Close an endpoint, or an alias, from which nothing was posted."""
    lib.ofp_endpoint_retire(pointer, 0)


def patience(linger: float | None) -> float:
    """Seconds for which a close lets leave what was posted; None: what ``OFIPY_LINGER`` says.

    Raises
    ------
    InvalidArgument
        When it is negative or not a number.
    """
    if linger is None:
        return float(config.value("LINGER") or 0)
    return nanoseconds(linger, "waits as OFIPY_LINGER says") / 1e9


def loop_runs_here() -> bool:
    """Whether an event loop runs in this thread, which a close must not hold up."""
    asyncio: Any = sys.modules.get("asyncio")
    try:
        asyncio.get_running_loop()
    except (AttributeError, RuntimeError):  # not imported, not whole yet; or no loop
        return False
    return True


def _rounds(
    departures: list[Departure], stays: Callable[[Departure], bool], end: float, progress: Callable[[], bool]
) -> Iterator[float]:
    """Look until nothing stays, or until `end`; yields how long to sleep until the next look."""
    waiting, pause = departures, 0.0
    while (waiting := [each for each in waiting if stays(each)]) and time.monotonic() < end:
        pause = 0.0 if progress() else min(max(2 * pause, _PAUSE_FIRST), _PAUSE_LONGEST)
        yield pause


def unsent_of(departures: Iterable[Departure]) -> NotSent | None:
    """What the exception says of everything that has not left and was not told yet; None: all has left."""
    count, operations, providers = 0, 0, set()
    peers: dict[str, None] = {}
    for each in departures:
        record = each.take_unsent()
        if record is None or not record.count:
            continue
        count += record.count
        operations |= record.operations
        providers.add(each.provider)
        peers.update(dict.fromkeys(each.peers(record.peers)))
    if not count:
        return None
    names = tuple(name for code, name in _OPERATIONS.items() if operations >> code & 1)
    error = NotSent(
        _sentence(count, names, tuple(peers)),
        operation="close",
        provider=providers.pop() if len(providers) == 1 else None,
        remedy="wait for what you post, or let close(linger=) and OFIPY_LINGER give more time",
    )
    error.count, error.operations, error.peers = count, names, tuple(peers)
    return error


def _sentence(count: int, operations: tuple[str, ...], peers: tuple[str, ...]) -> str:
    """For people: how many of what, to whom."""
    what = f" ({', '.join(operations)})" if operations else ""
    shown = ", ".join(peers[:3]) + (f" and {len(peers) - 3} more" if len(peers) > 3 else "")
    to = f" to {shown}" if peers else ""
    return f"{count} operation{'s' if count != 1 else ''}{what}{to} had not left when the endpoint closed"


def warn_not_sent(error: NotSent, advice: str | None = None) -> None:
    """Tell it where nothing can be raised: a line in the log, and a ResourceWarning."""
    text = f"{error.message} ({advice or error.remedy})"
    logger().warning("%s", text)
    warnings.warn(text, ResourceWarning, stacklevel=3)


class Closeable(Protocol):
    """A handle, as far as a close needs it."""

    def departures(self) -> list[Departure]:
        """Those of the endpoints that close with it."""
        ...

    def close(self) -> None:
        """Close it without lingering."""
        ...


class Parting:
    """One close of one or more trees: it lingers, closes, and tells what had not left.

    Parameters
    ----------
    handles : list of Closeable
        To be closed, in this order.
    linger : float or None
        Seconds; None: what ``OFIPY_LINGER`` says.
    progress : callable
        Moves the messages of the whole process, since peers may be in it; whether anything happened.
    holds_up : bool
        The rounds block the calling thread, so where an event loop runs in it there are none.

    Raises
    ------
    InvalidArgument
        When `linger` is negative or not a number.
    """

    __slots__ = ("_advice", "_deadline", "_departures", "_handles", "_progress", "_seconds")

    def __init__(
        self,
        handles: Sequence[Closeable],
        linger: float | None,
        progress: Callable[[], bool],
        *,
        holds_up: bool = True,
    ) -> None:
        self._handles = handles
        self._progress = progress
        self._seconds = patience(linger)
        self._deadline = time.monotonic() + self._seconds
        self._departures = list(
            {id(each): each for handle in handles for each in handle.departures()}.values()
        )
        self._advice: str | None = None
        if holds_up and self._seconds and self._departures and loop_runs_here():
            self._advice = "close() does not linger where an event loop runs: await aclose()"

    def rounds(self, *, only_wait: bool = False) -> Iterator[float]:
        """Pauses to be slept through before :meth:`close`.

        Parameters
        ----------
        only_wait : bool
            Let leave what is posted, and nothing else: the endpoints can be used afterwards.
        """
        if not self._seconds or not self._departures or self._advice is not None:
            return
        farewell = min(_FAREWELL, self._seconds / 10)
        end = self._deadline - farewell
        if only_wait:
            yield from _rounds(self._departures, Departure.waits, end, self._progress)
            return
        yield from _rounds(self._departures, Departure.lingers, end, self._progress)
        deadline = max(self._deadline, time.monotonic() + farewell)
        yield from _rounds(self._departures, Departure.drains, deadline, self._progress)
        for each in self._departures:
            each.patience = max(0.0, deadline - time.monotonic())

    def close(self) -> None:
        """Close the handles."""
        for handle in self._handles:
            handle.close()

    def finish(self) -> None:
        """Close the handles, and say once what had not left.

        Raises
        ------
        NotSent
            When it had time to leave.
        """
        self.close()
        error = self._not_sent()
        if error is not None and self._advice is None:
            raise error
        if error is not None:
            warn_not_sent(error, self._advice)

    def give_up(self) -> None:
        """Close the handles while an exception is on its way, and warn of what had not left."""
        with suppress(FabricError):
            self.close()
        self.warn()

    def warn(self) -> None:
        """Say what has not left without raising anything."""
        error = self._not_sent()
        if error is not None:
            warn_not_sent(error, self._advice)

    def _not_sent(self) -> NotSent | None:
        return unsent_of(self._departures) if self._seconds else None
