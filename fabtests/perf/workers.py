# SPDX-License-Identifier: BSD-3-Clause
"""The processes of one side, seen from the one that talks to the user.

That one opens nothing of the fabric, so its children start as forks. Each of them tells what it has over a pipe; a loop
in C cannot be told to stop, so that when something goes wrong, here or on the other side, they are killed.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Self

from fabtests.base.channel import Channel, told_error
from fabtests.base.program import Failed, NotRun
from ofipy.pingpong.leftovers import remove_leftovers
from ofipy.pingpong.pipe import DIED, ERROR, Pipe, die_with_parent, pick_cores, pin, report_result

__all__ = ["FORK", "Workers", "core_of"]

FORK = multiprocessing.get_context("fork")
END = "end"
"""Word of a process's last report."""


class Workers:
    """Processes of one side.

    Parameters
    ----------
    control : Channel
        To the process on the other side that has its workers.
    """

    def __init__(self, control: Channel) -> None:
        self._control = control
        self._processes: list[Any] = []
        self._pipes: list[Pipe] = []

    def start(self, task: Callable[..., None], channel: Channel, *arguments: Any, core: int | None) -> None:
        """Start one, with a channel to its counterpart."""
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=_work, args=(task, channel, arguments, theirs, core), daemon=True)
        process.start()
        theirs.close()
        self._pipes.append(Pipe(ours))
        self._processes.append(process)

    def messages(self) -> Iterator[tuple[int, str, Any]]:
        """What they tell: the number of the worker, a word, and what goes with it; until all have ended here and there.

        What comes over the control connection has number -1 and the word ``control``.

        Raises
        ------
        Failed, NotRun
            When one of them, or the other side, does.
        """
        waited: dict[Any, int] = {self._control: -1}
        waited |= {pipe: number for number, pipe in enumerate(self._pipes)}
        left = len(self._pipes)
        while waited:
            here = self._control in waited and self._control.has_come
            ready: list[Any] = [self._control] if here else wait([*waited])
            for each in ready:
                if each is self._control:
                    message = self._control.receive()
                    if "end" in message:
                        del waited[each]
                    else:
                        yield -1, "control", message
                    continue
                word, value = self._receive(each, waited[each])
                if word != END:
                    yield waited[each], word, value
                    continue
                del waited[each]
                left -= 1
                if not left:
                    self._control.send(end=True)

    def _receive(self, pipe: Any, number: int) -> tuple[str, Any]:
        word, value = pipe.receive()
        if word == ERROR:
            text = f"process {number} ended early" if value.kind == DIED else value.text
            told = {"error": text, "code": value.code}
            with suppress(Failed):
                self._control.send(**told)
            raise told_error(told)
        return word, value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if kind is not None:
                process.kill()
            process.join()
        remove_leftovers(process.pid for process in self._processes)


def core_of(*, first: bool) -> int:
    """The core of a side that shares this machine with the other one."""
    here, there = pick_cores()
    return here if first else there


def _work(
    task: Callable[..., None],
    channel: Channel,
    arguments: tuple[Any, ...],
    pipe: Connection,
    core: int | None,
) -> None:
    die_with_parent()
    pin(core)

    def measure() -> None:
        with channel:
            task(channel, *arguments, lambda word, value: pipe.send((word, value)))

    with suppress(KeyboardInterrupt):
        report_result(pipe, END, measure, plain=(OSError, Failed, NotRun))
