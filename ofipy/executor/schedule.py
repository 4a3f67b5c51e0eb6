# SPDX-License-Identifier: BSD-3-Clause
"""Which worker runs which task: a queue, the idle workers, and the task of each busy one.

Nothing here sends, waits or knows about time, so tests compare it with a model.

A worker has one task at a time. A second one would wait behind the first while other workers are idle, and two tasks
of which one waits for the other would never end.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

__all__ = ["Schedule", "Task"]


class Task(Protocol):
    """A task, as its schedule sees it."""

    retries: int
    """How often it may still be run again after its worker was lost."""

    def start(self) -> bool:
        """Whether it is to be run. False: it was cancelled, or has ended otherwise, and is forgotten."""
        ...


T = TypeVar("T", bound=Task)
W = TypeVar("W")


class Schedule(Generic[W, T]):
    """Tasks in the order in which they were added, and the workers that run them.

    Of several idle workers the one that became idle last gets the next task: its caches are warm, and the others sleep
    on.
    """

    def __init__(self) -> None:
        self._queue: deque[T] = deque()
        self._idle: list[W] = []
        self._busy: dict[W, T] = {}

    @property
    def workers(self) -> int:
        """How many have joined and are still here."""
        return len(self._idle) + len(self._busy)

    @property
    def queued(self) -> int:
        """Tasks that no worker has; those that were cancelled count until their turn."""
        return len(self._queue)

    def task_of(self, worker: W) -> T | None:
        """The task that a worker runs."""
        return self._busy.get(worker)

    def add(self, task: T) -> None:
        """Append a task to the queue."""
        self._queue.append(task)

    def join(self, worker: W) -> None:
        """A new worker is idle."""
        self._idle.append(worker)

    def next(self) -> tuple[W, T] | None:
        """A task and the worker that is to run it from now on; None: no task waits, or no worker is idle."""
        while self._idle and self._queue:
            task = self._queue.popleft()
            if task.start():
                worker = self._idle.pop()
                self._busy[worker] = task
                return worker, task
        return None

    def end(self, worker: W) -> T:
        """A worker's task has ended: the worker is idle again."""
        task = self._busy.pop(worker)
        self._idle.append(worker)
        return task

    def give_back(self, worker: W) -> None:
        """A worker's task was not begun: it is the first of the queue again, and the worker is idle."""
        self._queue.appendleft(self.end(worker))

    def leave(self, worker: W) -> None:
        """A worker leaves. A task that it had was not begun, and is the first of the queue again."""
        if worker in self._busy:
            self.give_back(worker)
        self._idle.remove(worker)

    def lose(self, worker: W) -> T | None:
        """A worker is lost.

        Returns
        -------
        Task or None
            Its task, if that may not be run again. One that may is the first of the queue again.
        """
        task = self._busy.pop(worker, None)
        if task is None:
            self._idle.remove(worker)
            return None
        if not task.retries:
            return task
        task.retries -= 1
        self._queue.appendleft(task)
        return None

    def drop(self, is_unwanted: Callable[[T], bool]) -> None:
        """Remove tasks from the queue; the others keep their order."""
        self._queue = deque(task for task in self._queue if not is_unwanted(task))

    def drain(self) -> Iterator[T]:
        """Take every task out of the queue; those that are to be run are yielded."""
        while self._queue:
            task = self._queue.popleft()
            if task.start():
                yield task
