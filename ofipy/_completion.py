# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues: many completions a call, no Python object for any."""

import errno as codes
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ofipy._binding import check, drain_log, failure, ffi, lib, nanoseconds
from ofipy._errors import FabricError, InvalidArgument, TimedOut
from ofipy._flags import Completed
from ofipy._lifetime import Handle, Resource
from ofipy._operations import record_dtype

if TYPE_CHECKING:
    from ofipy._aio import Reader
    from ofipy._endpoint import Endpoint
    from ofipy._fabric import Domain
    from ofipy._receive_context import ReceiveContext

__all__ = ["COMPLETION_DTYPE", "CompletionBatch", "CompletionQueue", "Rows", "describe_flags"]

COMPLETION_DTYPE = record_dtype("struct ofp_completion", 64)

Rows = np.ndarray[Any, np.dtype[np.void]]

_ROWS = ffi.typeof("struct ofp_completion[]")
_HANDLES = ffi.typeof("ofp_request_t[]")
_FORGOTTEN = (
    lambda: None,
    None,
)  # the queue was closed meanwhile, and what was waited for is known to be over
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


class CompletionQueue(Resource):
    """Where posted operations end. Made by :meth:`Domain.cq`; :mod:`select` and asyncio take it as it is.

    Operations that were started with a Request never appear here.
    """

    __slots__ = ("_crowded", "_domain", "_endpoints", "_notified", "_readers")

    _warns = False  # its domain does

    def __init__(self, domain: "Domain", *, size: int | None = None) -> None:
        if size is not None and size < 1:
            raise InvalidArgument(f"size={size}; 1 or more completions are meant")
        result = ffi.new("struct ofp_cq **")
        attributes = ffi.new("struct ofp_cq_attr *", {"size": size or 0})
        provider = domain.provider
        check(lib.ofp_cq_open(domain._pointer("cq"), attributes, result), operation="cq", provider=provider)
        self._domain = domain
        self._endpoints: weakref.WeakValueDictionary[int, Endpoint | ReceiveContext] = (
            weakref.WeakValueDictionary()
        )
        # What to do when a request that asked for it has finished, and what to keep alive until then: by
        # request.
        self._notified: dict[int, tuple[Callable[[], None], Any]] = {}
        self._crowded = 64  # entries at which those that have finished meanwhile are looked for
        self._readers: dict[int, Reader] = {}  # by id of the event loop

        def close(pointer: Any) -> None:
            check(lib.ofp_cq_retire(pointer), operation="close a queue", provider=provider)

        self._own(Handle(ffi.gc(result[0], lib.ofp_cq_free), close, (domain._core,), "completion queue"))

    @property
    def domain(self) -> "Domain":
        """What it was opened from."""
        return self._domain

    def batch(self, count: int) -> "CompletionBatch":
        """Room for `count` completions, allocated once, to read into again and again."""
        if count < 1:
            raise InvalidArgument(f"a batch of {count} completions; 1 or more are meant")
        return CompletionBatch(self, count)

    def read(self, max: int = 64) -> Rows:
        """Make progress, then take up to `max` completions.

        Returns
        -------
        ndarray of COMPLETION_DTYPE, shape (n,)
            What came, n from 0 to `max`. Failed operations too: their ``error`` is not 0.
        """
        return self.batch(max).read()

    def wait(self, *, min: int = 1, max: int = 64, timeout: float | None = None) -> Rows:
        """Wait for completions; as :meth:`CompletionBatch.wait`."""
        return self.batch(max).wait(min=min, timeout=timeout)

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

    def _watch(self, handle: int, action: Callable[[], None], keep: Any = None) -> bool:
        """Have `action` run once this request has finished, and keep an object until then.

        Returns
        -------
        bool
            False: it has finished already, and `action` will not run.
        """
        if len(self._notified) >= self._crowded:
            self._drain_finished()
            self._crowded = max(64, 2 * len(self._notified))
        self._notified[handle] = action, keep
        if lib.ofp_request_notify(handle) != 1:
            return True
        self._notified.pop(handle, None)  # closing may have been faster
        return False

    def _drain_finished(self) -> int:
        """Run what waits for finished requests. Returns how many there were."""
        pointer, total = self._pointer("drain"), 0
        while True:
            handles = ffi.new(_HANDLES, _FINISHED_AT_ONCE)
            count = check(lib.ofp_cq_finished(pointer, handles, _FINISHED_AT_ONCE), operation="drain")
            for index in range(count):
                action, _ = self._notified.pop(handles[index], _FORGOTTEN)
                action()
            total += count
            if count < _FINISHED_AT_ONCE:
                return total

    def _closing(self) -> None:
        for reader in list(self._readers.values()):
            reader.stop()

    def _closed(self) -> None:
        self._notified.clear()

    def __repr__(self) -> str:
        return f"<CompletionQueue of {self._domain.provider}{' closed' if self.closed else ''}>"


class CompletionBatch:
    """Memory for completions; made by :meth:`CompletionQueue.batch`. One thread at a time may use it."""

    __slots__ = ("_cq", "_expired", "_pointer", "_rows", "_size")

    def __init__(self, cq: CompletionQueue, size: int) -> None:
        self._cq = cq
        self._size = size
        self._rows: Rows = np.zeros(size, dtype=COMPLETION_DTYPE)
        self._pointer = ffi.from_buffer(_ROWS, self._rows)
        self._expired = ffi.new("bool *")

    def read(self) -> Rows:
        """Make progress, then take what has completed.

        Returns
        -------
        ndarray of COMPLETION_DTYPE, shape (n,)
            A view of the batch, valid until its next use.
        """
        core = self._cq._core.pointer
        count = lib.ofp_cq_read(
            core if core is not None else self._cq._pointer("read"), self._pointer, self._size
        )
        if count < 0:
            raise failure(count, operation="read", provider=self._cq._domain.provider)
        return self._rows[:count]

    def wait(self, *, min: int = 1, timeout: float | None = None) -> Rows:
        """Wait until `min` completions are there, then take up to the size of the batch.

        Parameters
        ----------
        min : int
            Completions.
        timeout : float, optional
            Seconds; None: for ever.

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
        if not 1 <= min <= self._size:
            raise InvalidArgument(f"min={min}; 1 to {self._size} completions fit the batch")
        left = nanoseconds(timeout)
        deadline = time.monotonic_ns() + left
        while True:
            count = lib.ofp_cq_wait(
                self._cq._pointer("wait"), self._pointer, self._size, min, left, self._expired
            )
            if count == -codes.ECANCELED:
                return self.read()
            if count < 0 and count != -codes.EINTR:
                raise failure(count, operation="wait", provider=self._cq._domain.provider)
            if count > 0:
                return self._rows[:count]
            if lib.ofp_log_waiting():
                drain_log()
            if timeout is not None:
                left = max(deadline - time.monotonic_ns(), 0)
                if self._expired[0] or (left == 0 and count == 0):
                    raise TimedOut(
                        f"no completion within {timeout:g} s",
                        operation="wait",
                        provider=self._cq._domain.provider,
                    )
