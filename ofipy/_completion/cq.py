# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues: many completions a call, no Python object for any."""

import errno as codes
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from ofipy._base.binding import check, drain_log, failure, ffi, lib, nanoseconds
from ofipy._base.errors import FabricError, TimedOut
from ofipy._base.flags import Completed
from ofipy._base.lifetime import Handle, Opening, ProcessBound
from ofipy._base.limits import LIMITS, limit, whole_number
from ofipy._discovery.domain import Child, D
from ofipy._memory.records import record_dtype
from ofipy._requests import RequestBase

__all__ = ["COMPLETION_DTYPE", "CompletionBatch", "CompletionQueue", "Rows", "describe_flags"]

COMPLETION_DTYPE = record_dtype("struct ofp_completion", 64)

Rows = np.ndarray[Any, np.dtype[np.void]]

_ROWS = ffi.typeof("struct ofp_completion[]")
_HANDLES = ffi.typeof("ofp_request_t[]")
_FINISHED_AT_ONCE = 64


def describe_flags(flags: int) -> str:
    """Name of the operation that a completion is of, such as ``trecv``."""
    what = Completed(flags)
    verb = next(
        (
            name
            for name in ("SEND", "RECV", "ATOMIC", "READ", "WRITE", "REMOTE_READ", "REMOTE_WRITE")
            if what & Completed[name]
        ),
        "operation",
    )
    return ("t" if what & Completed.TAGGED else "") + verb.lower().replace("_", " ")


class Poster(Protocol):
    """An endpoint or receive context, to those who read of its operations."""

    def _peer_text(self, peer: int) -> str | None:
        """A peer's address for messages, as far as it is known."""


class CompletionQueue(Child[D]):
    """Where posted operations end. Made by :meth:`Domain.cq`; :mod:`select` and asyncio take it as it is.

    Operations that were started with a Request never appear here.
    """

    __slots__ = ("_endpoints", "_interrupted", "_notified", "_readers")

    _warns = False  # its domain does

    def __init__(self, domain: D, *, size: int | None = None) -> None:
        result = ffi.new("struct ofp_cq **")
        attributes = ffi.new("struct ofp_cq_attr *", {"size": limit("size", size, of="completions")})
        provider = domain.provider
        with Opening(lambda: result[0], lib.ofp_cq_retire) as opening:
            check(
                lib.ofp_cq_open(domain._pointer("cq"), attributes, result), operation="cq", provider=provider
            )
            self._domain = domain
            self._endpoints: weakref.WeakValueDictionary[int, Poster] = weakref.WeakValueDictionary()
            # Requests that somebody watches, by handle. Who was dropped meanwhile is of no interest any more.
            self._notified: weakref.WeakValueDictionary[int, RequestBase] = weakref.WeakValueDictionary()
            self._readers: dict[int, Any] = {}  # those of aio, by id of the event loop
            self._interrupted: deque[CompletionBatch] = deque()

            def close(pointer: Any) -> None:
                check(lib.ofp_cq_retire(pointer), operation="close a queue", provider=provider)

            self._own(
                Handle(
                    ffi.gc(result[0], lib.ofp_cq_free),
                    close,
                    (domain._core,),
                    "completion queue",
                    opening=opening,
                )
            )

    def batch(self, count: int) -> "CompletionBatch":
        """Room for `count` completions, allocated once, to read into again and again."""
        return CompletionBatch(self, whole_number("count", count, *LIMITS["completions"]))

    def read(self, max: int = 64) -> Rows:
        """Make progress, then take up to `max` completions.

        Returns
        -------
        ndarray of COMPLETION_DTYPE, shape (n,)
            What came, n from 0 to `max`. Failed operations too: their ``error`` is not 0.
        """
        batch = self._batch(max)
        try:
            return batch.read()
        except BaseException:
            self._leave(batch)
            raise

    def wait(self, timeout: float | None = None, *, min: int = 1, max: int = 64) -> Rows:
        """Wait for completions; as :meth:`CompletionBatch.wait`."""
        batch = self._batch(max)
        try:
            return batch.wait(timeout, min=min)
        except BaseException:
            self._leave(batch)
            raise

    def _batch(self, max: int) -> "CompletionBatch":
        return self._interrupted.popleft() if self._interrupted else self.batch(max)

    def _leave(self, batch: "CompletionBatch") -> None:
        """What an interrupted call has taken comes with the next one."""
        if batch._core.count > 0:
            self._interrupted.append(batch)

    def signal(self) -> None:
        """Wake one waiter, now or when it comes; it returns with what is there."""
        check(lib.ofp_cq_signal(self._pointer("signal")), operation="signal", provider=self._domain.provider)

    def fileno(self) -> int:
        """The descriptor to sleep on; it stays the queue's. Sleep only when :meth:`arm` said so."""
        return check(
            lib.ofp_cq_fileno(self._pointer("fileno")), operation="fileno", provider=self._domain.provider
        )

    def arm(self) -> bool:
        """Whether it is safe to sleep on the descriptor; if not, read first (fi_trywait(3))."""
        if self._notified:
            # Requests that nobody waits for count as news until they are let go.
            self._drain_finished()
        return bool(
            check(lib.ofp_cq_arm(self._pointer("arm")), operation="arm", provider=self._domain.provider)
        )

    def exception(self, row: Any) -> FabricError | None:
        """The exception that a completion stands for, None when it succeeded.

        Parameters
        ----------
        row : numpy.void
            One record of what :meth:`read` returned.
        """
        error = int(row["error"])
        if error == 0:
            return None
        endpoint = self._endpoints.get(int(row["endpoint"]))
        source = int(row["source"])
        return failure(
            error,
            operation=describe_flags(int(row["flags"])),
            provider=self._domain.provider,
            peer=endpoint._peer_text(source) if endpoint is not None else None,
            length=int(row["length"]),
            provider_error=int(row["provider_error"]),
        )

    def _watch(self, request: RequestBase, action: Callable[[], None]) -> bool:
        """Have `action` run once when there is news of the request.

        Returns
        -------
        bool
            False: there is already, and `action` will not run.
        """
        if not request._watch(action):
            return False
        self._notified[request._handle] = request
        self._hear_of(request)
        return True

    def _hear_of(self, request: RequestBase) -> None:
        """Have C tell of its next news, unless they are there: then whoever watches learns them now."""
        while lib.ofp_request_notify(request._handle) != 0 and not request._attempt(0):
            pass

    def _drain_finished(self) -> int:
        """Take what C has told of. Returns how many requests that were."""
        pointer, total = self._pointer("drain"), 0
        while True:
            handles = ffi.new(_HANDLES, _FINISHED_AT_ONCE)
            count = check(lib.ofp_cq_finished(pointer, handles, _FINISHED_AT_ONCE), operation="drain")
            for index in range(count):
                request = self._notified.pop(handles[index], None)
                if request is None:
                    # Dropped, and with it a message that another one may want.
                    for other in list(self._notified.values()):
                        other._attempt(0)
                elif not request._attempt(0):
                    # Its message is on the way into memory.
                    self._notified[request._handle] = request
                    self._hear_of(request)
            total += count
            if count < _FINISHED_AT_ONCE:
                return total

    def _tell_awaiting(self) -> None:
        """An endpoint was closed: whoever awaits one of its requests learns that it was cancelled."""
        if self._core.is_open and not self._core.is_forked:
            with suppress(FabricError):
                self._drain_finished()

    def _closing(self) -> None:
        for reader in list(self._readers.values()):
            reader.stop()

    def _closed(self) -> None:
        self._notified.clear()

    def __repr__(self) -> str:
        return f"<CompletionQueue of {self._domain.provider}{' closed' if self.closed else ''}>"


class CompletionBatch(ProcessBound):
    """Memory for completions; made by :meth:`CompletionQueue.batch`. One thread at a time may use it."""

    __slots__ = ("_core", "_cq", "_expired", "_rows", "_size")

    def __init__(self, cq: CompletionQueue, size: int) -> None:
        self._cq = cq
        self._size = size
        self._rows: Rows = np.zeros(size, dtype=COMPLETION_DTYPE)
        self._core = ffi.new(
            "struct ofp_cq_batch *", {"rows": ffi.from_buffer(_ROWS, self._rows), "size": size}
        )
        self._expired = ffi.new("bool *")

    def read(self) -> Rows:
        """Make progress, then take what has completed.

        Returns
        -------
        ndarray of COMPLETION_DTYPE, shape (n,)
            A view of the batch, valid until its next use.
        """
        core = self._core
        # What an interrupted call has taken is still there.
        if core.count <= 0:
            queue = self._cq._core.pointer
            lib.ofp_cq_read_batch(queue if queue is not None else self._cq._pointer("read"), core)
        count = core.count
        if count < 0:
            raise failure(count, operation="read", provider=self._cq._domain.provider)
        rows = self._rows[:count]
        # Python runs no signal handler from here to the caller's next instruction.
        core.count = 0
        return rows

    def wait(self, timeout: float | None = None, *, min: int = 1) -> Rows:
        """Wait until `min` completions are there, then take up to the size of the batch.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None: for ever.
        min : int
            Completions.

        Returns
        -------
        ndarray of COMPLETION_DTYPE, shape (n,)
            A view of the batch, valid until its next use. Fewer than `min` when the time was over or
            :meth:`CompletionQueue.signal` was called; none only after a signal.

        Raises
        ------
        TimedOut
            When the time was over and nothing at all had come.
        """
        whole_number("min", min, 1, self._size, "completions")
        core = self._core
        left = nanoseconds(timeout)
        deadline = time.monotonic_ns() + left
        while core.count <= 0:
            lib.ofp_cq_wait_batch(self._cq._pointer("wait"), core, min, left, self._expired)
            count = core.count
            if count == -codes.ECANCELED:
                return self.read()
            if count < 0 and count != -codes.EINTR:
                raise failure(count, operation="wait", provider=self._cq._domain.provider)
            if lib.ofp_log_waiting():
                drain_log()
            if timeout is not None and count <= 0:
                left = max(deadline - time.monotonic_ns(), 0)
                if self._expired[0] or (left == 0 and count == 0):
                    raise TimedOut(
                        f"no completion within {timeout:g} s",
                        operation="wait",
                        provider=self._cq._domain.provider,
                    )
        rows = self._rows[: core.count]
        core.count = 0  # as in read()
        return rows
