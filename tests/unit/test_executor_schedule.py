# SPDX-License-Identifier: BSD-3-Clause
"""The schedule of an executor against a model: tasks, deaths, retries, departures, in any order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ofipy.executor.schedule import Schedule


@dataclass(eq=False)
class Task:
    number: int
    retries: int
    cancelled: bool = False
    begun: int = 0
    ends: list[str] = field(default_factory=list)

    def start(self) -> bool:
        return not self.cancelled


class Machine(RuleBasedStateMachine):
    """The model: a list of waiting tasks in order, and who runs what."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule: Schedule[int, Task] = Schedule()
        self.tasks: list[Task] = []
        self.allowed: dict[int, int] = {}  # retries at first
        self.waiting: list[Task] = []
        self.running: dict[int, Task] = {}
        self.idle: list[int] = []
        self.workers = itertools.count()

    @rule(retries=st.integers(0, 3))
    def add(self, retries: int) -> None:
        task = Task(len(self.tasks), retries)
        self.allowed[task.number] = retries
        self.tasks.append(task)
        self.waiting.append(task)
        self.schedule.add(task)

    @rule()
    def join(self) -> None:
        worker = next(self.workers)
        self.idle.append(worker)
        self.schedule.join(worker)

    @rule()
    def dispatch(self) -> None:
        while (pair := self.schedule.next()) is not None:
            worker, task = pair
            while self.waiting[0].cancelled:
                self.waiting.pop(0)
            assert worker == self.idle.pop()
            assert task is self.waiting.pop(0)
            task.begun += 1
            self.running[worker] = task
        while self.idle and self.waiting and self.waiting[0].cancelled:
            self.waiting.pop(0)
        assert not (self.idle and self.waiting)

    @precondition(lambda self: any(not task.begun for task in self.waiting))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from([task for task in self.waiting if not task.begun])).cancelled = True

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.running)))
        task = self.running.pop(worker)
        assert self.schedule.end(worker) is task
        task.ends.append("result")
        self.idle.append(worker)

    @precondition(lambda self: self.running or self.idle)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted([*self.running, *self.idle])))
        lost = self.schedule.lose(worker)
        if worker in self.idle:
            self.idle.remove(worker)
            assert lost is None
            return
        task = self.running.pop(worker)
        if task.begun > self.allowed[task.number]:
            assert lost is task
            task.ends.append("lost")
        else:
            assert lost is None
            self.waiting.insert(0, task)

    @precondition(lambda self: self.running or self.idle)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A task that a leaving worker had was not begun, so it costs no retry."""
        worker = data.draw(st.sampled_from(sorted([*self.running, *self.idle])))
        self.schedule.leave(worker)
        if worker in self.idle:
            self.idle.remove(worker)
            return
        task = self.running.pop(worker)
        task.begun -= 1
        self.waiting.insert(0, task)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.running)))
        self.schedule.give_back(worker)
        task = self.running.pop(worker)
        task.begun -= 1
        self.waiting.insert(0, task)
        self.idle.append(worker)

    @rule(odd=st.booleans())
    def drop(self, odd: bool) -> None:
        self.schedule.drop(lambda task: task.number % 2 == odd)
        for task in [task for task in self.waiting if task.number % 2 == odd]:
            self.waiting.remove(task)
            task.ends.append("dropped")

    @rule()
    def drain(self) -> None:
        assert list(self.schedule.drain()) == [task for task in self.waiting if not task.cancelled]
        for task in self.waiting:
            task.ends.append("drained")
        self.waiting.clear()

    @invariant()
    def counts(self) -> None:
        assert self.schedule.workers == len(self.idle) + len(self.running)
        assert self.schedule.queued == len(self.waiting)
        for worker, task in self.running.items():
            assert self.schedule.task_of(worker) is task
        for worker in self.idle:
            assert self.schedule.task_of(worker) is None

    @invariant()
    def each_ends_once_and_runs_as_often_as_it_may(self) -> None:
        for task in self.tasks:
            assert len(task.ends) <= 1
            assert task.begun <= self.allowed[task.number] + 1
            somewhere = task in self.waiting or task in self.running.values()
            assert somewhere != bool(task.ends) or (task.cancelled and not somewhere)


TestMachine = Machine.TestCase


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 5), st.integers(0, 3))
def test_every_task_ends_whatever_dies(deaths: list[bool], workers: int, retries: int) -> None:
    """Run to the end: each turn the newest running worker dies or finishes; a dead one is replaced."""
    schedule: Schedule[int, Task] = Schedule()
    tasks = [Task(number, retries) for number in range(10)]
    for task in tasks:
        schedule.add(task)
    names = itertools.count()
    for _ in range(workers):
        schedule.join(next(names))
    running: dict[int, Task] = {}
    fates = iter(deaths)
    while True:
        while (pair := schedule.next()) is not None:
            running[pair[0]] = pair[1]
            pair[1].begun += 1
        if not running:
            break
        worker, task = running.popitem()
        if next(fates, False):
            if schedule.lose(worker) is task:
                task.ends.append("lost")
            schedule.join(next(names))
        else:
            assert schedule.end(worker) is task
            task.ends.append("result")
    assert all(len(task.ends) == 1 for task in tasks)
    assert sum(task.begun for task in tasks) == 10 + sum(retries - task.retries for task in tasks)
    assert all(task.begun == retries + 1 for task in tasks if task.ends == ["lost"])
