# SPDX-License-Identifier: BSD-3-Clause
"""Requests: one operation each, to be waited for, tested, awaited or cancelled.

What has to hold together whatever interrupts (the slot in the core, the completion, the hold on the buffer) is C:
``ofipy/requests``. A request that is dropped while its operation runs leaves the buffer to a list there, until the
operation has ended; one that the program never got, since Ctrl-C came up in the posting call, is taken back.
"""

from __future__ import annotations

import errno as codes
from typing import TYPE_CHECKING, Any, Generic, Self, SupportsIndex, cast, overload

from ofipy._base.binding import failure, lib
from ofipy._base.errors import Again, Canceled, Closed, FabricError, NoMemory, TimedOut
from ofipy._base.flags import Op
from ofipy._base.lifetime import ProcessBound
from ofipy._base.record import Record, set_field
from ofipy._base.renamed import room_timeout_from
from ofipy._discovery.av import Peer
from ofipy._requests import RequestBase, start

__all__ = [
    "COMPLETED",
    "FetchRequest",
    "Message",
    "MessageRequest",
    "PreparedRequest",
    "Request",
    "make_poller",
    "no_room",
    "queue_is_full",
]

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from typing_extensions import TypeVar

    # What wait() and await return. `ofipy.Request` without it is an operation whose result is the request itself.
    T = TypeVar("T", covariant=True, default="Request[Any]")
else:
    from typing import TypeVar

    T = TypeVar("T", covariant=True)

_UNKNOWN: int = lib.OFP_PEER_UNKNOWN
_NAMES_NOBODY = "; a receive that names its peer ends when that one does"
_NAMES = {int(op): op.name.lower() for op in Op}


class Request(RequestBase, ProcessBound, Generic[T]):
    """An operation under way, or finished; for type checkers generic in what :meth:`wait` and ``await`` return.

    A send that finished within its call returns one shared, finished Request. Result fields are there once
    the request has finished; those of a send stay at their defaults. Several threads and tasks may wait for one.
    """

    __slots__ = ()

    @property
    def _operation(self) -> str:
        return _NAMES.get(self._op, "operation")

    def _context(self) -> dict[str, Any]:
        endpoint = self._endpoint
        if endpoint is None:
            return {"operation": self._operation}
        return {
            "operation": self._operation,
            "provider": endpoint.provider,
            "peer": endpoint._peer_text(self._peer),
        }

    if TYPE_CHECKING:

        def wait(self, timeout: float | None = None) -> T: ...

        def __await__(self) -> Generator[Any, None, T]: ...

    def _result(self) -> T:
        """What :meth:`wait` returns or raises, once the request has finished."""
        if self._gone and self._error == codes.ECANCELED:
            raise Canceled("the domain was closed before its result was taken", **self._context())
        if self._error:
            raise failure(
                self._error,
                length=self._length,
                room=self._room or None,
                provider_error=self._provider_error,
                **self._context(),
            )
        return cast("T", self)

    def _peer_is_up(self) -> bool:
        endpoint = self._endpoint
        return bool(endpoint.closed or lib.ofp_peer_is_up(endpoint._pointer("wait"), self._peer))

    def _timed_out(self, timeout: float) -> Any:
        context = self._context()
        named = context.get("peer") is not None
        if named and not self._peer_is_up():
            raise TimedOut(
                f"not finished within {timeout:g} s, and the peer is not connected",
                remedy="start the peer, or check its address; it goes on: wait again, or cancel() it",
                **context,
            )
        anybody = not named and self._operation in ("recv", "trecv")
        raise TimedOut(
            f"not finished within {timeout:g} s",
            remedy=f"it goes on: wait again, or cancel() it{_NAMES_NOBODY if anybody else ''}",
            **context,
        )

    def _refused(self, code: int) -> Any:
        """The core does not say whether it has finished."""
        raise failure(code, **self._context())

    def _is_over(self) -> bool:
        """Whether the result is here, or can be had without making progress."""
        return self._over or (self._finished and self._attempt(0))

    def test(self) -> bool:
        """Make progress, then say whether the operation has finished, well or not."""
        return self._attempt(0)

    @property
    def done(self) -> bool:
        """Whether it has finished, well or not; looks only."""
        return self._is_over()

    def exception(self) -> FabricError | None:
        """What :meth:`wait` raises, None when the operation went well or still goes on."""
        if not self.done:
            return None
        try:
            self._result()
        except FabricError as error:
            return error
        return None

    def cancel(self) -> bool:
        """Take the operation back.

        Returns
        -------
        bool
            True: it ends as :class:`~ofipy.Canceled`, nothing was sent or received. False: too late, it takes
            its course.
        """
        result = self._cancel()
        if result in (-codes.ENOENT, -codes.ECANCELED):
            return False
        if result < 0:
            raise failure(result, **self._context())
        return True

    def _withdraw(self) -> None:
        """Nobody awaits it any longer: a receive is taken back."""
        if self._operation in ("recv", "trecv") and not self.cancel():
            self._leave_message()

    def _leave_message(self) -> None:
        """It may not be cancelled any more; nothing by default."""

    # ---------------------------------------------------------------------------------------- result fields

    @property
    def length(self) -> int:
        """Bytes received."""
        return self._length if self._is_over() else 0

    @property
    def tag(self) -> int:
        """Tag of the message received."""
        return self._tag if self._is_over() else 0

    @property
    def remote_data(self) -> int | None:
        """Remote CQ data that came with the message, None without."""
        return self._data if self._is_over() and self._has_data else None

    @property
    def data(self) -> int | None:
        """Deprecated: the former name of :attr:`remote_data`."""
        import warnings

        warnings.warn(
            "the data of a request is called remote_data now; the payload of a message is Message.data",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.remote_data

    @property
    def source(self) -> Peer | None:
        """Sender of the message received, None when it has no address here."""
        if not self._is_over() or self._endpoint is None:
            return None
        av = self._endpoint._peers.av
        if self._source == _UNKNOWN or av is None:
            return self._endpoint._sender(self._receiver)  # type: ignore[no-any-return]
        return av._peer(self._source)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        peer = None if self._endpoint is None else self._endpoint._peer_text(self._peer)
        receives = self._operation in ("recv", "trecv")
        whom = "" if peer is None else f" {'from' if receives else 'with'} {peer}"
        return f"<{type(self).__name__} {self._operation}{whom} {self._state(receives)}>"

    def _state(self, receives: bool) -> str:
        if not self._over:
            return "finished" if self._finished else "running"
        if self._error:
            return f"failed: {type(self.exception()).__name__}"
        return f"finished: {self._length} bytes with tag {self._tag}" if receives else "finished"


class _Completed(Request):
    """The one request of every send that finished within its call."""

    __slots__ = ()

    @property
    def _operation(self) -> str:
        return "send"

    def __repr__(self) -> str:
        return "<Request finished>"  # of a send, a write or an atomic

    def cancel(self) -> bool:
        return False

    def __reduce_ex__(self, protocol: object) -> str:
        return "COMPLETED"


COMPLETED: Request = _Completed()
COMPLETED._over = True


_SHOWN = 32  # bytes of a message in its repr


class Message(Record):
    """A message that was received without knowing its size before; it reads like its bytes.

    ``bytes(message)``, ``message[0]``, ``message[4:8]``, ``len(message)``, ``b"x" in message`` and
    ``message == b"done"`` speak of :attr:`data`.
    """

    data: bytearray
    """The payload; yours."""
    source: Peer | None
    """The sender, None when it has no address here."""
    tag: int
    """0 for a message without."""
    length: int
    """Bytes of `data`."""
    remote_data: int | None
    """Remote CQ data that came with it, None without."""
    incarnation: int
    """The sender's, in which it arrived: see :meth:`Endpoint.incarnation`. 0: the transport has none."""

    def __init__(
        self,
        data: bytearray,
        source: Peer | None,
        tag: int,
        length: int,
        remote_data: int | None,
        incarnation: int = 0,
    ) -> None:
        set_field(self, "data", data)
        set_field(self, "source", source)
        set_field(self, "tag", tag)
        set_field(self, "length", length)
        set_field(self, "remote_data", remote_data)
        set_field(self, "incarnation", incarnation)

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> bytearray: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | bytearray:
        return self.data[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self.data)

    def __contains__(self, item: SupportsIndex | bytes | bytearray | memoryview) -> bool:
        return item in self.data

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bytes | bytearray | memoryview):
            return self.data == other
        return super().__eq__(other)

    def __repr__(self) -> str:
        begin = bytes(self.data[:_SHOWN])
        more = "…" if self.length > _SHOWN else ""
        remote = "" if self.remote_data is None else f" with remote data {self.remote_data:#x}"
        return (
            f"<Message of {self.length} bytes {begin!r}{more} from {self.source!r}, tag {self.tag}{remote}>"
        )


class FetchRequest(Request[Any]):
    """A fetching atomic operation; its ``wait()`` returns what the target held before.

    A numpy scalar where one was passed, otherwise an array.
    """

    __slots__ = ()

    def _result(self) -> Any:
        super()._result()
        return self._fetched if self._fetched.ndim else self._fetched[()]


class MessageRequest(Request[Message]):
    """A receive of unknown size: it takes hold of a message, then receives it into memory of its size.

    Dropping or cancelling one loses no message: what it holds goes back to its place in the order of arrival.
    """

    __slots__ = ("_message",)

    _message: Message

    @property
    def incarnation(self) -> int:
        """The sender's, in which the message arrived; 0 before, and where the transport has none."""
        return self._incarnation if self._is_over() else 0

    def _result(self) -> Message:
        if self._too_large:
            raise self._without_memory()
        super()._result()
        # Several threads may ask, and all get the same object.
        if not hasattr(self, "_message"):
            self._message = Message(
                self._keep, self.source, self.tag, self.length, self.remote_data, self._incarnation
            )
        message = self._message
        # Python runs no signal handler from here to the caller's next instruction; until now the message could be
        # given back.
        self._kept = True
        return message

    def _without_memory(self) -> FabricError:
        context = self._context()
        sender = self.source
        if sender is not None:
            context["peer"] = self._endpoint._peer_text(int(sender))
        return NoMemory(
            f"a message of {self._length} bytes, for which there is no memory, was dropped",
            errno=codes.ENOMEM,
            length=self._length,
            remedy="receive into memory of a known size with trecv_into(), or ask who sends such a length",
            **context,
        )

    def cancel(self) -> bool:
        """Take the receive back; the message that it may hold goes back to its place.

        Returns
        -------
        bool
            False: too late, the message has been received, or is on its way into memory.
        """
        # One that cannot be cancelled since it has finished holds a message, or it failed.
        return super().cancel() or self._unclaim()

    def _leave_message(self) -> None:
        self._leave()


class PreparedRequest(Request["PreparedRequest"]):
    """An operation that is prepared once and started many times (MPI: persistent); idle or running.

    Made by ``prepare_tsend`` and its like. Started by :meth:`start`, or several with one call by
    :func:`ofipy.start`.
    """

    __slots__ = ()

    def start(self, *, room_timeout: float | None = None, timeout: float | None = None) -> Self:
        """Start it; what the last run left in the result fields is gone.

        Parameters
        ----------
        room_timeout : float, optional
            Seconds to wait for room in a full transmit queue; None: for ever. Where an event loop runs in this thread
            it never waits: the operation itself does, in the core.
        timeout : float, optional
            Deprecated: the former name of `room_timeout`.

        Raises
        ------
        Busy
            When it is running.
        Again
            When an event loop runs, and as many operations wait already as the queue holds.
        TimedOut
            When there was no room within the time; it was not started.
        Closed
            When its endpoint is.
        """
        if timeout is not None:
            room_timeout = room_timeout_from(timeout)
        start(self, room_timeout=room_timeout)
        return self

    def _not_started(self, error: int) -> FabricError:
        if error in (-codes.ECANCELED, -codes.ESTALE):
            return Closed("the endpoint of this prepared operation is closed", operation=self._operation)
        return failure(error, **self._context())

    def _refused(self, code: int) -> Any:
        text = "it was not started" if code == -codes.EINVAL else None
        raise failure(code, text=text, **self._context())

    def _state(self, receives: bool) -> str:
        # Its first run is still to come, or the last one has not ended.
        return super()._state(receives) if self._over else "idle or running"


def make_poller(loop: Any) -> Any:
    """The poller of an event loop, in which a task waits for the first time."""
    # Only who awaits pays for the import of asyncio.
    from ofipy._completion.aio import Poller

    return Poller(loop)


def queue_is_full(endpoint: Any, operation: str) -> Again:
    """The error of a posting call that would keep the event loop from turning."""
    return Again(
        "the transmit queue is full, and as many operations wait for room in it",
        errno=codes.EAGAIN,
        operation=operation,
        provider=endpoint.provider,
        remedy="await what was sent before sending more, or open the endpoint with a larger tx_size",
    )


def no_room(timeout: float, **context: Any) -> TimedOut:
    """The error of a posting call whose time is over."""
    return TimedOut(
        f"no room in the transmit queue within {timeout:g} s, so it was not started",
        errno=codes.ETIMEDOUT,
        remedy="let the peer receive, or open the endpoint with a larger tx_size",
        **context,
    )
