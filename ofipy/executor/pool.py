# SPDX-License-Identifier: BSD-3-Clause
"""The workers of one or more executors, as any thread sees them, and the thread that serves them.

That thread runs an event loop with the :class:`Crew`. Other threads append tasks to a list and wake the loop, once for
any number of tasks. The loop sleeps until a message, a task or the end of a child comes.
"""

import asyncio
import atexit
import itertools
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from typing import Any

from ofipy._base.errors import FabricError, ForkedError
from ofipy._completion.selector import loop as polling_loop
from ofipy._discovery.address import Address
from ofipy._objects.open import open as open_endpoint
from ofipy._requests import Hold
from ofipy.executor import wire
from ofipy.executor.children import Children
from ofipy.executor.crew import Crew
from ofipy.executor.session import FutureTask, Session
from ofipy.executor.trust import refuse_open_door

__all__ = ["Pool"]

_log = logging.getLogger("ofipy.executor")


class Pool:
    """Workers, and the thread that gives them tasks.

    Parameters
    ----------
    service, node
        Of its endpoint, as of :func:`ofipy.open`.
    children : int
        Processes that it starts.
    expected : int
        Other workers that come by themselves.
    elastic : bool
        Any number of further workers may come at any time. Without, the pool is broken when the last worker has gone.
    lasts : bool
        It outlives its executors, until the interpreter ends.

    Raises
    ------
    ConfigError, AccessDenied
        When strangers could connect to it.
    FabricError
        When no endpoint can be opened.
    """

    def __init__(
        self,
        *,
        service: int | str | None = None,
        node: str | None = None,
        children: int = 0,
        expected: int = 0,
        elastic: bool = False,
        lasts: bool = False,
    ) -> None:
        self._pid = os.getpid()
        endpoint = open_endpoint(service, node=node, progress="manual")
        try:
            refuse_open_door(endpoint)
            self.address: Address = endpoint.address
            self._children = Children(children, str(self.address))
        except BaseException:
            endpoint.close()
            raise
        self._endpoint = endpoint
        self._elastic = elastic
        self._lasts = lasts
        self._crew = Crew(
            endpoint,
            self._children,
            expected=expected,
            elastic=elastic,
            changed=self._tell_waiting,
            broken=self._break,
        )
        self._numbers = itertools.count(1)
        # Guards what threads share.
        self._lock = threading.RLock()
        # Notified when workers come and go.
        self._changed = threading.Condition(self._lock)
        self._sessions: set[Session] = set()
        self._incoming: list[FutureTask] = []
        self._is_woken = False
        self._broken: FabricError | None = None
        self._loop = polling_loop()
        self._thread = threading.Thread(target=self._run, name="ofipy-executor", daemon=True)
        self._thread.start()
        atexit.register(self.finish)

    # ------------------------------------------------------------------------------------------ from any thread

    def open_session(
        self, initializer: Callable[..., Any] | None, initargs: tuple[Any, ...], retries: int
    ) -> Session:
        """Begin to serve an executor."""
        session = Session(initializer, initargs, retries, self._release)
        with Hold(self._lock):
            self._sessions.add(session)
            session.broken = self._broken
        return session

    def submit(
        self,
        session: Session,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> FutureTask:
        """Append a task to the queue.

        Raises
        ------
        RuntimeError, BrokenExecutor
            As of :meth:`Session.enter`.
        ForkedError
            In a forked child.
        """
        self._check_process()
        task = FutureTask(session, next(self._numbers) % wire.NUMBERS, function, arguments, keywords)
        session.enter(task.future)
        with Hold(self._lock):
            self._incoming.append(task)
            woken, self._is_woken = self._is_woken, True
        if not woken:
            self._call(self._admit)
        return task

    def cancel(self, session: Session) -> None:
        """Cancel the tasks of an executor that no worker has begun."""

        def cancel() -> None:
            self._admit()
            self._crew.cancel(session)

        self._check_process()
        self._call(cancel)

    @property
    def workers(self) -> int:
        """How many workers are here and ready."""
        return self._crew.workers

    def wait_ready(self, number: int | None, timeout: float | None) -> bool:
        """Wait for workers.

        Parameters
        ----------
        number : int, optional
            How many must be ready. Default: all that are expected, and at least one.
        timeout : float, optional
            Seconds; None: for ever.

        Returns
        -------
        bool
            Whether they are.

        Raises
        ------
        BrokenExecutor
            When no worker is left, and none will come.
        """

        def is_over() -> bool:
            wanted = max(1, self._crew.awaited + self.workers) if number is None else number
            return self._broken is not None or self.workers >= wanted

        self._check_process()
        with Hold(self._lock):
            ready = self._changed.wait_for(is_over, timeout)
            broken = self._broken
        if broken is not None:
            raise BrokenExecutor(str(broken)) from broken
        return ready

    def wait_for(self, session: Session) -> None:
        """Wait until a closed executor has ended, and the pool, if it served no other. Ctrl-C ends the pool."""
        self._check_process()
        self._warn_of_waiting()
        try:
            session.wait()
            if not self._lasts:
                self._thread.join()
        except KeyboardInterrupt:
            if not self._lasts:
                self.abort()
            raise

    def end_if_unused(self) -> None:
        """End, unless it serves an executor or is to last."""
        self._call(self._end_if_unused)

    def finish(self) -> None:
        """Let every executor end its tasks, then end; called when the interpreter ends. Ctrl-C ends the wait."""
        if self._pid != os.getpid():
            return
        with Hold(self._lock):
            self._lasts = False
            sessions = list(self._sessions)
        try:
            for session in sessions:
                session.close()
            self.end_if_unused()
            self._warn_of_waiting()
            self._thread.join()
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """End at once: what runs is abandoned. The processes that the pool has started are killed."""
        self._children.kill()
        self._call(lambda: self._crew.end(abort=True))
        self._thread.join()

    def _warn_of_waiting(self) -> None:
        """Log why a wait for the tasks may last."""
        waiting = sum(session.unfinished for session in list(self._sessions))
        if waiting and self._elastic and not self.workers:
            _log.warning(
                "%d tasks wait for a worker: start one with ofipy worker %s, or press Ctrl-C",
                waiting,
                self.address,
            )

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise ForkedError(
                "the executor belongs to the parent process",
                operation="Executor",
                remedy="open a new one in this process",
            )

    def _call(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the pool has ended
            self._loop.call_soon_threadsafe(function)

    def _release(self, session: Session) -> None:
        """An executor is closed, and its futures have ended."""
        with Hold(self._lock):
            self._sessions.discard(session)
        self.end_if_unused()

    # -------------------------------------------------------------------------------------------- in the thread

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._crew.serve())
        except BaseException as reason:
            _log.exception("the executor's thread has failed")
            error = reason
        finally:
            atexit.unregister(self.finish)
            self._fail_rest(error)

    def _fail_rest(self, cause: BaseException | None) -> None:
        """End what can run no more, after the thread has ended by an abort or by a bug."""
        error = FabricError("the executor has ended", operation="Executor")
        error.__cause__ = cause
        self._break(error)
        self._admit()
        self._crew.fail_queue(error)

    def _admit(self) -> None:
        with Hold(self._lock):
            incoming, self._incoming = self._incoming, []
            self._is_woken = False
        self._crew.add(incoming)
        if self._broken is not None:
            self._crew.fail_queue(self._broken)

    def _tell_waiting(self) -> None:
        with Hold(self._lock):
            self._changed.notify_all()

    def _break(self, error: FabricError) -> None:
        """No task can run any more."""
        with Hold(self._lock):
            self._broken = self._broken or error
            for session in self._sessions:
                session.broken = session.broken or error
            self._changed.notify_all()

    def _end_if_unused(self) -> None:
        if not self._sessions and not self._lasts:
            self._crew.end()
