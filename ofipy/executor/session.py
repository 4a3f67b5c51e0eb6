# SPDX-License-Identifier: BSD-3-Clause
"""One executor as its pool knows it, and its tasks with their futures."""

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import Any

from ofipy._base.errors import WorkerLost
from ofipy._requests import Hold
from ofipy.executor.call import Call, call_name

__all__ = ["FutureTask", "Session"]


class Session:
    """The futures of one executor, as far as they have not ended.

    Parameters
    ----------
    initializer : callable, optional
        Called with `initargs` in each worker before its first task of this executor.
    initargs : tuple
        Pickled here, so that what cannot be pickled is refused at once.
    retries : int
        How often a task is run again after its worker was lost.
    drained : callable
        Called with the session, from any thread, once it is closed and all its futures have ended.
    """

    def __init__(
        self,
        initializer: Callable[..., Any] | None,
        initargs: tuple[Any, ...],
        retries: int,
        drained: Callable[["Session"], None],
    ) -> None:
        self.initializer = None if initializer is None else pickle.dumps((initializer, initargs), protocol=5)
        self.retries = retries
        self.broken: BaseException | None = None
        """Why no task can run any more; set by the pool's thread."""
        self.closed = False
        self._drained = drained
        self._unfinished = 0
        self._lock = threading.Lock()
        self._over = threading.Event()

    def enter(self, future: "Future[Any]") -> None:
        """A future is submitted.

        Raises
        ------
        RuntimeError
            After :meth:`close`.
        BrokenExecutor
            When no task can run any more.
        """
        with Hold(self._lock):
            if self.closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self.broken is not None:
                raise BrokenExecutor(str(self.broken)) from self.broken
            self._unfinished += 1
        future.add_done_callback(self._leave)

    def _leave(self, _future: "Future[Any]") -> None:
        with Hold(self._lock):
            self._unfinished -= 1
            over = self.closed and not self._unfinished
        if over:
            self._end()

    def close(self) -> None:
        """Accept no more futures. A second call does nothing."""
        with Hold(self._lock):
            if self.closed:
                return
            self.closed = True
            over = not self._unfinished
        if over:
            self._end()

    def _end(self) -> None:
        self._drained(self)
        self._over.set()

    def wait(self) -> None:
        """Wait until it is closed and all its futures have ended."""
        self._over.wait()

    @property
    def unfinished(self) -> int:
        """Futures that have not ended."""
        return self._unfinished


class FutureTask:
    """A call and its future; the pool's thread owns it once it is submitted.

    Parameters
    ----------
    session : Session
        Whose it is.
    number : int
        By which worker and pool know it.
    function, arguments, keywords
        The call. They are pickled when a worker gets them, so nothing is stored of tasks that wait but these.
    """

    __slots__ = ("_begun", "_call", "future", "number", "retries", "session")

    def __init__(
        self,
        session: Session,
        number: int,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        self.session = session
        self.number = number
        self.retries = session.retries
        self.future: Future[Any] = Future()
        self._call = function, arguments, keywords
        self._begun = False

    @property
    def name(self) -> str:
        """What people call it."""
        return call_name(self._call[0], self.number)

    def start(self) -> bool:
        """Whether it is to be run."""
        if not self._begun and not self.future.set_running_or_notify_cancel():
            return False
        self._begun = True
        if self.session.broken is not None:
            self.fail(BrokenExecutor(str(self.session.broken)), self.session.broken)
            return False
        return True

    def call(self, *, initialize: bool) -> Call:
        """What the worker gets."""
        return (self.session.initializer if initialize else None, *self._call)

    def cancel(self) -> bool:
        """Cancel it, unless it was begun; whether it is cancelled. Waiters are notified."""
        if self._begun or not self.future.cancel():
            return False
        self.future.set_running_or_notify_cancel()
        return True

    def finish(self, result: Any) -> None:
        """It has returned."""
        self.future.set_result(result)

    def fail(self, error: BaseException, cause: BaseException | None = None) -> None:
        """It ends with an exception."""
        if cause is not None:
            error.__cause__ = cause
        self.future.set_exception(error)

    def lose(self, what: str, worker: str, cause: BaseException | None) -> None:
        """Its worker is lost, or there is none for it."""
        lost = WorkerLost(
            what,
            operation="Executor",
            remedy="it may have run in part; Executor(retries=…) runs such tasks again on other workers",
        )
        lost.task, lost.worker = self.name, worker
        self.fail(lost, cause)
