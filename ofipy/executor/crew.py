# SPDX-License-Identifier: BSD-3-Clause
"""The workers of a pool, as the pool's thread serves them: who is here, what each runs, what travels to and from them.

Everything here runs in the event loop of that thread, and nothing is locked.
"""

import asyncio
import logging
import pickle
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from typing import Any

from ofipy._base.errors import Again, Canceled, Closed, FabricError, PeerLost
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._operations.objects import read_object
from ofipy.executor import main_module, wire
from ofipy.executor.call import InitializerFailed, unwrap
from ofipy.executor.children import Children
from ofipy.executor.schedule import Schedule
from ofipy.executor.session import FutureTask, Session
from ofipy.executor.trust import refuse_stranger
from ofipy.executor.wire import Kind, To

__all__ = ["Crew"]

_log = logging.getLogger("ofipy.executor")

_STOP_SECONDS = 2.0
"""For the last message to arrive at workers."""
_FULL_SECONDS = 0.001
"""Between two tries to send while the transport has no space."""


class Member:
    """A worker."""

    def __init__(self, peer: Peer, name: str) -> None:
        self.peer = peer
        self.name = name
        self.is_ready = False
        self.initialized: set[Session] = set()
        """Executors whose initializer it has run."""


class Crew:
    """The workers, and the tasks that wait for them.

    Parameters
    ----------
    endpoint : Endpoint
        To which workers connect; closed by :meth:`serve`.
    children : Children
        Those of the workers that were started here.
    expected : int
        Other workers that come by themselves.
    elastic : bool
        Any number of further workers may come at any time.
    changed : callable
        Called when a worker has come or gone.
    broken : callable
        Called with an error when no worker is left, and none will come.
    """

    def __init__(
        self,
        endpoint: Endpoint[Any],
        children: Children,
        *,
        expected: int,
        elastic: bool,
        changed: Callable[[], None],
        broken: Callable[[FabricError], None],
    ) -> None:
        self._endpoint = endpoint
        self._children = children
        self._expected = expected
        self._elastic = elastic
        self._changed = changed
        self._broken = broken
        self._main = pickle.dumps(main_module.describe())
        self._schedule: Schedule[Member, FutureTask] = Schedule()
        self._members: dict[Peer, Member] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # of the loop, which itself refers to them weakly
        self._ending = asyncio.Event()
        self._came_or_went = asyncio.Event()
        self._aborted = False

    @property
    def workers(self) -> int:
        """How many workers are here and ready; any thread may ask."""
        return self._schedule.workers

    @property
    def awaited(self) -> int:
        """Workers that are expected and not ready yet; any thread may ask."""
        return max(0, self._children.running + self._expected - self.workers)

    async def serve(self) -> None:
        """Serve the workers until :meth:`end`."""
        try:
            self._start(self._keep_door())
            self._children.watch(self._check_workers)
            await self._ending.wait()
            while not self._aborted and len(self._members) < self._expected:
                await self._came_or_went.wait()  # they would fail if nobody were here
                self._came_or_went.clear()
        finally:
            await self._stop()

    def end(self, *, abort: bool = False) -> None:
        """Dismiss the workers; with `abort` whatever they run."""
        self._aborted |= abort
        self._ending.set()
        self._came_or_went.set()

    def add(self, tasks: list[FutureTask]) -> None:
        """Append tasks to the queue, and send what can be sent."""
        for task in tasks:
            self._schedule.add(task)
        self._dispatch()

    def cancel(self, session: Session) -> None:
        """Cancel the tasks of an executor that no worker has begun."""
        self._schedule.drop(lambda task: task.session is session and task.cancel())

    def fail_queue(self, error: FabricError, worker: str = "-") -> None:
        """End all tasks that wait."""
        for task in self._schedule.drain():
            task.lose(f"{task.name} has no worker: {error.message}", worker, error)

    # tasks

    def _start(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _dispatch(self) -> None:
        while (pair := self._schedule.next()) is not None:
            if not self._send_task(*pair):
                return

    def _send_task(self, member: Member, task: FutureTask) -> bool:
        """Send a task to a worker; False: the transport has no space now."""
        session = task.session
        first = session.initializer is not None and session not in member.initialized
        tag = wire.tag(To.WORKER, Kind.TASK, task.number)
        try:
            request = self._endpoint.tsend_obj(task.call(initialize=first), member.peer, tag=tag)
        except Again:
            self._schedule.give_back(member)
            return False
        except PeerLost:
            return True  # the receive from it ends, too
        except Exception as error:
            error.add_note(
                f"{task.name} was not sent to a worker: function and arguments must be picklable; a worker imports the "
                "function by its module and name"
            )
            self._schedule.end(member)
            task.fail(error)
            return True
        if first:
            member.initialized.add(session)
        if not request.done:
            self._start(self._see_sent(member, task, request))
        return True

    async def _see_sent(self, member: Member, task: FutureTask, request: Any) -> None:
        """Wait until a task has left: there may be space for another one."""
        try:
            await request
        except (PeerLost, Canceled, Closed):
            pass  # the receive from the worker ends, too
        except FabricError as error:
            if self._schedule.task_of(member) is task:
                self._schedule.end(member)
                task.fail(error)
        self._dispatch()

    # workers

    async def _keep_door(self) -> None:
        room = bytearray(wire.HELLO_MAX)
        while True:
            request = self._endpoint.trecv_into(room, **wire.filter_of(To.DOOR))
            try:
                await request
            except (Canceled, Closed):
                return
            except FabricError as error:
                _log.warning("a message that is no worker's first one: %s", error)
                continue
            if request.source is not None and request.source not in self._members:
                self._introduce(request.source, bytes(room[: request.length]))

    def _introduce(self, peer: Peer, hello: bytes) -> None:
        try:
            refuse_stranger(self._endpoint, peer, "Executor")
            name = wire.read_hello(hello)
        except FabricError as error:
            _log.warning("a worker was refused: %s", error)
            self._start(self._tell(peer, Kind.REFUSED, str(error).encode()))
            return
        member = self._members[peer] = Member(peer, name)
        self._changed_workers()
        self._start(self._attend(member))
        self._start(self._tell(peer, Kind.WELCOME, self._main))

    async def _tell(self, peer: Peer, kind: Kind, data: bytes) -> None:
        """Send a message and wait until it has arrived. That its receiver is gone is noticed elsewhere."""
        with suppress(FabricError):
            while True:
                with suppress(Again):
                    tag = wire.tag(To.WORKER, kind)
                    await self._endpoint.tsend(data, peer, tag=tag, complete="delivery")
                    break
                await asyncio.sleep(_FULL_SECONDS)
        self._dispatch()

    async def _dismiss(self, member: Member) -> None:
        """Tell a worker to end, and forget its address."""
        await self._tell(member.peer, Kind.STOP, b"")
        with suppress(FabricError):
            self._endpoint.av.remove(member.peer)

    async def _attend(self, member: Member) -> None:
        """Receive what a worker sends, until it has gone."""
        filter_ = wire.filter_of(To.EXECUTOR)
        try:
            while member.peer in self._members:
                message = await self._endpoint.trecv(member.peer, **filter_)
                self._handle(member, message.tag, message.data)
                del message  # the memory of a result lives as long as the result
        except (Canceled, Closed):
            return
        except FabricError as error:
            self._lose(member, error)

    def _handle(self, member: Member, tag: int, data: bytearray) -> None:
        kind = wire.kind_of(tag)
        if kind == Kind.READY and not member.is_ready:
            member.is_ready = True
            self._schedule.join(member)
            self._changed_workers()
            _log.info("worker %s has joined: %d workers", member.name, self.workers)
        elif kind == Kind.RESULT and self._is_running(member, wire.number_of(tag)):
            self._finish(self._schedule.end(member), data)
        elif kind == Kind.LEAVE and member.is_ready:
            self._schedule.leave(member)
            _log.info("worker %s has left: %d workers", member.name, self.workers)
            self._forget(member)
            self._check_workers(member.name)
        else:
            raise FabricError(f"worker {member.name} has sent a message of kind {kind} out of turn")
        self._dispatch()

    def _is_running(self, member: Member, number: int) -> bool:
        task = self._schedule.task_of(member)
        return task is not None and task.number == number

    def _finish(self, task: FutureTask, data: bytearray) -> None:
        """The outcome of a task is here."""
        try:
            outcome = read_object(data)
        except Exception as error:
            error.add_note(f"the result of {task.name} has arrived and cannot be unpickled here")
            task.fail(error)
            return
        try:
            result = unwrap(outcome)
        except InitializerFailed as error:
            task.session.broken = error
            task.fail(BrokenExecutor(str(error)), error)
        except BaseException as error:
            task.fail(error)
        else:
            task.finish(result)

    def _lose(self, member: Member, error: FabricError) -> None:
        """A worker has died, or has broken the rules."""
        _log.warning("worker %s is lost: %s", member.name, error)
        if member.is_ready:
            task = self._schedule.lose(member)
            if task is not None:
                task.lose(f"worker {member.name} was lost while it ran {task.name}", member.name, error)
        self._forget(member)
        self._check_workers(member.name, error)
        self._dispatch()

    def _forget(self, member: Member) -> None:
        del self._members[member.peer]
        self._start(self._dismiss(member))
        if self._expected:
            self._expected -= 1

    def _check_workers(self, last: str = "", cause: FabricError | None = None) -> None:
        """Fail everything when no worker is left, and none will come."""
        self._changed_workers()
        if self._elastic or self._members or self._expected or self._children.running:
            return
        failures = self._children.describe_failures()
        reason = "no worker is left" + (
            f": {failures}" if failures else f"; the last one was {last}" if last else ""
        )
        remedy = "see what the workers have printed; Executor(listen=…) waits for further workers"
        error = FabricError(reason, operation="Executor", remedy=remedy)
        error.__cause__ = cause
        self.fail_queue(error, last or "-")  # first: what comes later is refused
        self._broken(error)

    def _changed_workers(self) -> None:
        self._came_or_went.set()
        self._changed()

    # the end

    async def _stop(self) -> None:
        """Dismiss the workers, and close the endpoint."""
        for member in list(self._members.values()):
            task = self._schedule.task_of(member)
            if task is not None:  # aborted
                task.fail(Canceled("the executor was ended while the task ran", operation="Executor"))
        self._children.kill(beside={member.name for member in self._members.values()})
        unsent = [asyncio.create_task(self._tell(peer, Kind.STOP, b"")) for peer in self._members]
        if unsent:
            await asyncio.wait(unsent, timeout=0 if self._aborted else _STOP_SECONDS)
        for each in (*unsent, *self._tasks):
            each.cancel()
        self._endpoint.close(linger=0)
        await self._children.wait()
