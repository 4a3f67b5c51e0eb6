# SPDX-License-Identifier: BSD-3-Clause
"""Requests: one operation each, to be waited for, tested, awaited or cancelled.

A request owns its slot in C until the operation has finished and its completion was taken; taking it gives
the slot back. Its buffer stays exported as long. A request that is dropped while its operation runs leaves
both to the completion queue, which lets go of them when the operation has finished.
"""

import errno as codes
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ofipy._binding import drain_log, failure, ffi, lib, nanoseconds
from ofipy._buffers import address_of
from ofipy._errors import Canceled, Closed, FabricError, TimedOut

if TYPE_CHECKING:
    from ofipy._av import Peer
    from ofipy._endpoint import Endpoint

__all__ = ["COMPLETED", "Message", "MessageRequest", "PreparedRequest", "Request"]

_take = lib.ofp_request_take
_take_length = lib.ofp_request_take_length
_wait = lib.ofp_request_wait
_finish = lib.ofp_request_finish
_finished = lib.ofp_request_finished
_completion = lib.ofp_request_completion
_CLAIM: int = lib.OFP_COMPLETED_CLAIM
_HAS_DATA: int = lib.OFP_COMPLETED_REMOTE_CQ_DATA
_UNKNOWN: int = lib.OFP_PEER_UNKNOWN
_NOT_YET = (-codes.EAGAIN, -codes.EINTR)
_AWAIT_SPIN = 10_000  # ns; less where the core finds that spinning does not pay


class Request:
    """An operation under way, or finished.

    A send that finished within its call returns one shared, finished Request. Result fields are there once
    the request has finished; those of a send stay at their defaults.
    """

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_completion",
        "_endpoint",
        "_handle",
        "_operation",
        "_peer",
        "_tag",
    )

    def __init__(
        self,
        endpoint: "Endpoint",
        handle: int,
        buffer: Any,
        operation: str,
        peer: int,
        tag: int | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._handle = handle  # of the slot in C; 0 once its completion was taken
        self._buffer = buffer
        self._operation = operation
        self._peer = peer
        self._tag = tag  # of a receive that leaves only the length open
        self._completion: Any = None  # an int: the length, which was all there was to learn

    def wait(self, *, timeout: float | None = None) -> Any:
        """Wait until the operation has finished.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None: for ever. After a time-out, or Ctrl-C, the operation goes on.

        Returns
        -------
        Request or Message
            The request itself; for a receive of unknown size the message.

        Raises
        ------
        TimedOut
            When the time is over.
        Canceled, Truncated, PeerLost and other FabricError
            What the operation ended with.
        """
        # The way of most requests: one call that waits, takes the completion and gives the slot back.
        if timeout is None and self._endpoint._handle is not None:
            try:
                if self._tag is not None:
                    # Nobody drops a request that is waited for; and when it goes later, just as an answer to
                    # what it brought is due, there is nothing left to do.
                    self.__class__ = Request
                    length = _take_length(self._handle)
                    if length >= 0:
                        self._handle = 0
                        self._completion = length
                        self._buffer = None
                        return self
                    self.__class__ = RunningRequest
                if not self._handle:
                    return self._result()
                completion = _take(self._handle, -1)
            except BaseException:
                self._recall()
                raise
            if not completion.error:
                self._handle = 0
                self._completion = completion
                self._buffer = None
                return self
            self._settle(completion)
        return self._wait(timeout)

    def _recall(self) -> None:
        """Note what was taken when a signal handler has raised as the call returned: its result was lost."""
        if type(self) is Request:
            self.__class__ = RunningRequest
        if self._handle:
            completion = lib.ofp_request_recall(self._handle)
            if completion.error >= 0:
                self._settle(completion)

    def _wait(self, timeout: float | None) -> Any:
        left = nanoseconds(timeout)
        deadline = time.monotonic_ns() + left
        while not self._attempt(left):
            # Between two calls Python runs signal handlers; Ctrl-C leaves from here.
            if lib.ofp_log_waiting():
                drain_log()
            if timeout is not None:
                left = deadline - time.monotonic_ns()
                if left <= 0:
                    if self._attempt(0):
                        break
                    raise TimedOut(f"not finished within {timeout:g} s", **self._context())
        return self._result()

    def _attempt(self, timeout: int) -> bool:
        """Wait once, for nanoseconds, at most a second. True: finished and taken."""
        if not self._handle:
            return True
        if self._endpoint._handle is None and self._endpoint._domain.closed:
            # The slot went with the domain.
            self._handle, self._buffer = 0, None
            return True
        try:
            completion = _take(self._handle, timeout)
        except BaseException:
            self._recall()
            raise
        return self._settle(completion)

    def _settle(self, completion: Any) -> bool:
        """Note what was taken. False: the operation has not finished."""
        error = completion.error
        if error < 0:
            if error in _NOT_YET:
                return False
            raise failure(error, **self._context())
        self._handle = 0
        self._completion = completion
        self._buffer = None
        return True

    def _result(self) -> Any:
        row = self._row()
        if row is None:
            raise Canceled("the domain was closed before its result was taken", **self._context())
        if row.error:
            raise failure(
                row.error, length=int(row.length), provider_error=row.provider_error, **self._context()
            )
        return self

    def _context(self) -> dict[str, Any]:
        endpoint = self._endpoint
        return {
            "operation": self._operation,
            "provider": endpoint.provider,
            "peer": endpoint._peer_text(self._peer),
        }

    def test(self) -> bool:
        """Make progress, then say whether the operation has finished, well or not."""
        return self._attempt(0)

    @property
    def done(self) -> bool:
        """Whether it has finished, well or not; looks only."""
        if not self._handle or self._endpoint._handle is None:
            return self._attempt(0)
        return bool(_finished(self._handle)) and self._attempt(0)

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
        if not self._handle or self._endpoint._handle is None:
            return False
        result = lib.ofp_request_cancel(self._handle)
        if result == -codes.ENOENT:
            return False
        if result < 0:
            raise failure(result, **self._context())
        return True

    def __await__(self) -> Generator[Any, None, Any]:
        # A fast peer answers sooner than the event loop could sleep and wake up.
        if self._attempt(_AWAIT_SPIN):
            return self._result()
        from ofipy import _aio

        return (yield from _aio.finish(self).__await__())

    # ---------------------------------------------------------------------------------------- result fields

    def _row(self) -> Any:
        """The completion, None before there is one."""
        if type(self._completion) is int:
            self._completion = ffi.new(
                "struct ofp_completion *",
                {"length": self._completion, "tag": self._tag, "source": self._peer},
            )
        return self._completion

    @property
    def length(self) -> int:
        """Bytes received."""
        row = self._row()
        return int(row.length) if row is not None else 0

    @property
    def tag(self) -> int:
        """Tag of the message received."""
        row = self._row()
        return int(row.tag) if row is not None else 0

    @property
    def data(self) -> int | None:
        """Remote CQ data that came with the message, None without."""
        row = self._row()
        return int(row.data) if row is not None and row.flags & _HAS_DATA else None

    @property
    def source(self) -> "Peer | None":
        """Sender of the message received, None when it has no address here."""
        row = self._row()
        if row is None:
            return None
        if row.source == _UNKNOWN or self._endpoint._av is None:
            return self._endpoint._sender(row.endpoint)
        return self._endpoint._av._peer(int(row.source))

    def __repr__(self) -> str:
        state = "running" if self._handle else "failed" if self.exception() else "finished"
        name = "Request" if type(self) is RunningRequest else type(self).__name__
        return f"<{name} {self._operation} {state}>"


class RunningRequest(Request):
    """One that has to leave its operation and its buffer to somebody when it is dropped before the end."""

    __slots__ = ()

    def __del__(self) -> None:
        if self._handle:
            self._abandon()

    def _abandon(self) -> None:
        """Nobody can ask for the result any longer; the buffer has to stay until the operation is over."""
        if self._endpoint._handle is None and self._endpoint._domain.closed:
            return
        _release_later(self._endpoint, self._handle, self._buffer)


def _release_later(endpoint: "Endpoint", handle: int, buffer: Any) -> None:
    """Leave a running operation and its buffer to the queue."""
    if not endpoint._cq._watch(handle, lambda: lib.ofp_request_release(handle), buffer):
        lib.ofp_request_release(handle)


class _Completed(Request):
    """The one request of every send that finished within its call."""

    __slots__ = ()

    def __init__(self) -> None:
        self._handle = 0
        self._buffer = self._completion = None
        self._operation = "send"

    def wait(self, *, timeout: float | None = None) -> Any:
        return self

    def _attempt(self, timeout: int) -> bool:
        return True

    def _result(self) -> Any:
        return self

    def cancel(self) -> bool:
        return False

    def __await__(self) -> Generator[Any, None, Any]:
        return self
        yield

    def __reduce__(self) -> str:
        return "COMPLETED"


COMPLETED: Request = _Completed()


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was received without knowing its size before."""

    data: bytearray
    """The payload; yours."""
    source: "Peer | None"
    """The sender, None when it has no address here."""
    tag: int
    """0 for a message without."""
    length: int
    """Bytes of `data`."""
    remote_data: int | None
    """Remote CQ data that came with it, None without."""

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return bytes(self.data)


class MessageRequest(RunningRequest):
    """A receive of unknown size: it takes hold of a message, then receives it into memory of its size.

    Dropping or cancelling one loses no message: what it holds goes back to its place in the order of arrival.
    """

    __slots__ = ("_message", "_payload")

    def __init__(self, endpoint: "Endpoint", handle: int, operation: str, peer: int) -> None:
        super().__init__(endpoint, handle, None, operation, peer)
        self._message: Message | None = None
        self._payload: bytearray | None = None  # set once the message is on its way into it

    def wait(self, *, timeout: float | None = None) -> Any:
        ready = timeout is None and self._handle and self._endpoint._handle is not None
        if ready and self._attempt(-1):
            return self._result()
        return self._wait(timeout)

    def _settle(self, completion: Any) -> bool:
        if completion.error == 0 and completion.flags & _CLAIM:
            if self._endpoint._handle is None:
                # The message went with the endpoint.
                return self._end_as_canceled()
            self._claim(int(completion.length))
            return self._settle(_take(self._handle, 0))
        return super()._settle(completion)

    def _claim(self, length: int) -> None:
        payload = bytearray(length)
        memory = ffi.from_buffer(payload)
        result = lib.ofp_request_claim(self._handle, lib.OFP_REGION_PROCESS, address_of(memory), length)
        if result < 0:
            raise failure(result, **self._context())
        self._payload, self._buffer = payload, memory

    def _result(self) -> Message:
        super()._result()
        if self._message is None:
            assert self._payload is not None
            self._message = Message(self._payload, self.source, self.tag, self.length, self.data)
        return self._message

    def cancel(self) -> bool:
        """Take the receive back; the message that it may hold goes back to its place.

        Returns
        -------
        bool
            False: too late, the message has been received, or is on its way into memory.
        """
        if super().cancel():
            return True
        if not self._handle or self._payload is not None or self._endpoint._handle is None:
            return False
        # It cannot be cancelled since it has finished: it holds a message, or it failed.
        if lib.ofp_request_unclaim(self._handle) < 0:
            return False
        return self._end_as_canceled()

    def _end_as_canceled(self) -> bool:
        lib.ofp_request_release(self._handle)
        self._handle, self._completion = 0, _CANCELED
        return True

    def _abandon(self) -> None:
        if self._endpoint._handle is None and self._endpoint._domain.closed:
            return
        if self._payload is not None:
            self._give_back()
            return
        self.cancel()
        if self._handle and _take(self._handle, 0).error in _NOT_YET:
            _release_later(self._endpoint, self._handle, self._buffer)

    def _give_back(self) -> None:
        """The message is on its way into memory: hand it to the next receive that it matches."""
        endpoint, handle, payload = self._endpoint, self._handle, self._payload
        operation = self._operation
        self._handle = 0

        def finished() -> None:
            rest = MessageRequest(endpoint, handle, operation, _UNKNOWN)
            rest._payload = payload
            if rest._attempt(0) and rest.exception() is None:
                endpoint._returned.append(rest)

        if not endpoint._cq._watch(handle, finished, self._buffer):
            finished()


_CANCELED = ffi.new("struct ofp_completion *", {"error": codes.ECANCELED})


class PreparedRequest(RunningRequest):
    """An operation that is prepared once and started many times (MPI: persistent); idle or running.

    Made by ``prepare_tsend`` and its like. Started by :meth:`start`, or several with one call by
    :func:`ofipy.start`.
    """

    __slots__ = ("_segments",)

    def start(self) -> Self:
        """Start it; what the last run left in the result fields is gone.

        Raises
        ------
        Busy
            When it is running.
        Closed
            When its endpoint is.
        """
        result = lib.ofp_start(self._handle)
        while result in _NOT_YET:
            result = lib.ofp_start(self._handle)
        if result < 0:
            raise self._not_started(result)
        return self

    def _not_started(self, error: int) -> FabricError:
        if error == -codes.ECANCELED:
            return Closed("the endpoint of this prepared operation is closed", operation=self._operation)
        return failure(error, **self._context())

    def wait(self, *, timeout: float | None = None) -> Any:
        if timeout is None and _finish(self._handle) == 1:
            return self
        return self._wait(timeout)

    def _attempt(self, timeout: int) -> bool:
        state = _wait(self._handle, timeout)
        if state > 0:
            return True
        if state == 0 or state == -codes.EINTR:
            return False
        text = "it was not started" if state == -codes.EINVAL else None
        raise failure(state, text=text, **self._context())

    def _row(self) -> Any:
        return _completion(self._handle) if _finished(self._handle) else None

    @property
    def done(self) -> bool:
        """Whether the last start has finished, well or not; False before the first. Looks only."""
        return bool(_finished(self._handle))

    def __repr__(self) -> str:
        return f"<PreparedRequest {self._operation}>"

    def _abandon(self) -> None:
        if _wait(self._handle, 0) == 0:
            _release_later(self._endpoint, self._handle, self._buffer)
        else:
            lib.ofp_request_release(self._handle)
