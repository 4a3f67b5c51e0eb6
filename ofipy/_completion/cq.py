# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues: many completions a call, no Python object for any."""

from __future__ import annotations

import errno as codes
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ofipy._base.arrays import np
from ofipy._base.binding import check, drain_log, failure, ffi, lib, nanoseconds
from ofipy._base.errors import FabricError, TimedOut
from ofipy._base.flags import Completed
from ofipy._base.lifetime import Handle, Opening, ProcessBound
from ofipy._base.limits import LIMITS, limit, whole_number
from ofipy._discovery.domain import Child, D
from ofipy._memory import records
from ofipy._requests import Notices

__all__ = ["CompletionBatch", "CompletionQueue", "Rows", "describe_flags"]

if TYPE_CHECKING:
    Rows: TypeAlias = np.ndarray[Any, np.dtype[np.void]]

_ROWS = ffi.typeof("struct ofp_completion[]")


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

    __slots__ = ("_endpoints", "_interrupted", "_notices", "_pollers")

    _warns = False  # its domain does

    def __init__(self, domain: D, *, size: int | None = None) -> None:
        result = ffi.new("struct ofp_cq **")
        attributes = ffi.new("struct ofp_cq_attr *", {"size": limit("size", size, of="completions")})
        provider = domain.provider
        with Opening(lambda: result[0], lib.ofp_cq_retire, lib.ofp_cq_free) as opening:
            check(
                lib.ofp_cq_open(domain._pointer("cq"), attributes, result), operation="cq", provider=provider
            )
            self._domain = domain
            self._endpoints: weakref.WeakValueDictionary[int, Poster] = weakref.WeakValueDictionary()
            self._pollers: weakref.WeakSet[Any] = weakref.WeakSet()  # of aio, which watch the descriptor
            self._interrupted: deque[CompletionBatch] = deque()

            def close(pointer: Any) -> None:
                check(lib.ofp_cq_retire(pointer), operation="close a queue", provider=provider)

            pointer = opening.hold()
            self._notices = Notices(int(ffi.cast("uintptr_t", pointer)), opening.memory, weakref.ref(self))
            self._own(
                Handle(
                    pointer,
                    close,
                    (domain._core,),
                    "completion queue",
                    opening=opening,
                )
            )

    def batch(self, count: int) -> CompletionBatch:
        """Room for `count` completions, allocated once, to read into again and again."""
        return CompletionBatch(self, whole_number("count", count, *LIMITS["completions"]))

    def read(self, max: int = 64) -> Rows:
        """Make progress, then take up to `max` completions.

        Returns
        -------
        ndarray of COMPLETION_DTYPE, shape (n,)
            What came, n from 0 to `max`. Failed operations too: their ``error`` is not 0.
        """
        # C hands a completion out once: what an interrupted call has taken is in its batch and nowhere else.
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

    def _batch(self, max: int) -> CompletionBatch:
        return self._interrupted.popleft() if self._interrupted else self.batch(max)

    def _leave(self, batch: CompletionBatch) -> None:
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
        # Requests that nobody waits for count as news until they are let go.
        self._notices.collect()
        return self._arm()

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

    def _arm(self) -> bool:
        return bool(
            check(lib.ofp_cq_arm(self._pointer("arm")), operation="arm", provider=self._domain.provider)
        )

    def _tell_awaiting(self) -> None:
        """An endpoint was closed: whoever awaits one of its requests learns that it was cancelled."""
        if self._core.is_open and not self._core.is_forked:
            with suppress(FabricError):
                self._notices.collect()

    def _closing(self) -> None:
        for poller in list(self._pollers):
            poller.forget(self._notices)

    def _closed(self) -> None:
        self._notices.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<CompletionQueue of {self._domain.provider} closed>"
        numbers = ", ".join(map(str, sorted(self._endpoints)))
        plural = "s" if len(self._endpoints) > 1 else ""
        users = f"endpoint{plural} {numbers}" if numbers else "no endpoint"
        return f"<CompletionQueue of {self._domain.provider} for {users}>"


class CompletionBatch(ProcessBound):
    """Memory for completions; made by :meth:`CompletionQueue.batch`. One thread at a time may use it."""

    __slots__ = ("_core", "_cq", "_expired", "_rows", "_size")

    def __init__(self, cq: CompletionQueue, size: int) -> None:
        self._cq = cq
        self._size = size
        self._rows: Rows = np.zeros(size, dtype=records.COMPLETION_DTYPE)
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
                # Nothing may mean the end of a round alone, which lasts a second at most.
                if self._expired[0] or (left == 0 and count == 0):
                    raise TimedOut(
                        f"no completion within {timeout:g} s",
                        operation="wait",
                        provider=self._cq._domain.provider,
                    )
        rows = self._rows[: core.count]
        core.count = 0  # as in read()
        return rows
