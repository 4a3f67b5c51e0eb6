# SPDX-License-Identifier: BSD-3-Clause
"""Who closes what, and when.

The problem: C wants children closed before their parents, while Python may collect objects of a dropped tree
in any order, end the interpreter with everything open, or fork. The choice: what has to be closed in C is a
:class:`Handle`, and handles know each other without the objects around them. A parent's handle holds its
children's handles strongly; an object holds its own handle and its parent object; a handle knows its object
weakly, only to tell it that it is closed.

Closing may take seconds, when a peer takes nothing. So each tree, that of a fabric, has a lock of its own, and a
finaliser never waits for one: it runs in any thread, inside whatever that does. Before a program's own close takes that
lock it lingers (:class:`Parting`), so that what was posted leaves.
"""

import os
import sys
import time
import warnings
import weakref
from _thread import RLock
from _thread import _local as local
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from ofipy._base import ending
from ofipy._base.binding import drain_log, logger
from ofipy._base.errors import Canceled, Closed, FabricError, ForkedError, InvalidArgument, NotSent
from ofipy._base.linger import CLOSE_TIMEOUT, Departure, Parting, warn_not_sent
from ofipy._base.opening import Opening
from ofipy._requests import Hold

__all__ = ["CLOSE_TIMEOUT", "Handle", "Opening", "ProcessBound", "Resource", "call_before_exit_close"]

_roots: "dict[int, Handle]" = {}  # open handles without a parent, in the order opened


class _Tree:
    """What all handles with one root share."""

    __slots__ = ("late", "lock")

    def __init__(self) -> None:
        # One close at a time; finalisers run inside others, so its holder may take it again.
        self.lock = RLock()
        self.late: deque[Handle] = deque()  # to be closed by whoever has the lock

    def close(self, handle: "Handle") -> None:
        """Close a handle of this tree; the lock is held."""
        outer, _closing.tree = _closing.tree, self
        try:
            handle._close()
        finally:
            _closing.tree = outer

    def close_late(self) -> None:
        """Close what finalisers have left, unless somebody else does it."""
        while self.late:
            with Hold(self.lock, blocking=False) as is_taken:
                if not is_taken:
                    return
                while self.late:
                    # Another finaliser may run anywhere in here, and take the last one.
                    with suppress(FabricError, IndexError):
                        self.close(self.late.popleft())


class _Closing(local):
    """Of each thread."""

    tree: _Tree | None = None
    """The one in which it closes something now."""


_closing = _Closing()


class Handle:
    """A C object that has to be closed once, after its children.

    Parameters
    ----------
    pointer
        What C calls it.
    close : callable
        Called with the pointer; raises FabricError when C refuses.
    parents : tuple of Handle
        Each closes this one before itself.
    kind : str
        For messages.
    last : bool
        Close it after those of its parent's children that are not so, since they use it.
    opening : Opening, optional
        Told when this owns the object.
    departure : Departure, optional
        Of an endpoint, which lingers.
    progress : callable, optional
        Of a domain: called with the pointer, it moves messages; positive: something happened.
    """

    __slots__ = (
        "__weakref__",
        "children",
        "close_pointer",
        "departure",
        "interrupted",
        "kind",
        "last",
        "owner",
        "parents",
        "pid",
        "pointer",
        "progress",
        "shell",
        "tree",
    )

    def __init__(
        self,
        pointer: Any,
        close: Callable[[Any], None],
        parents: "tuple[Handle, ...]",
        kind: str,
        *,
        last: bool = False,
        opening: Opening | None = None,
        departure: Departure | None = None,
        progress: Callable[[Any], int] | None = None,
    ) -> None:
        self.pointer = pointer
        self.departure = departure
        self.progress = progress
        # Other threads may be on their way into a call with the pointer when it is closed. They hold the object that
        # holds this, and the memory that C needs to say that it is closed goes with it.
        self.shell = (pointer, opening.memory if opening is not None else None)
        self.close_pointer = close
        self.parents = parents
        self.tree: _Tree = parents[0].tree if parents else _Tree()
        self.kind = kind
        self.last = last
        self.pid = os.getpid()
        self.interrupted = False  # in the middle of closing
        self.owner: weakref.ref[Resource] | None = None
        self.children: dict[int, Handle] = {}
        number = id(self)
        if parents:
            parents[0].children[number] = self
            if opening is not None:
                opening.owned = True
        for parent in parents[1:]:
            parent.children[number] = self
        if not parents:
            ending.watch(_close_all)
            _roots[id(self)] = self

    @property
    def is_open(self) -> bool:
        """Whether it has not been closed."""
        return self.pointer is not None

    @property
    def is_forked(self) -> bool:
        """Whether it was opened by a parent process."""
        return self.pid != os.getpid()

    def close(self) -> None:
        """Close the children, newest first, then this; a second call does nothing.

        Raises
        ------
        FabricError
            The first failure; the others are closed all the same.
        """
        if self.pointer is None:
            return
        if self.is_forked:
            # Another thread may have held the lock at the moment of the fork.
            for child in list(self.children.values()):
                child.close()
            self._forget()
            return
        tree = self.tree
        if _closing.tree not in (None, tree):
            # The garbage collector runs this inside another close: two threads could wait for each other.
            self.close_soon()
            return
        with Hold(tree.lock):
            tree.close(self)
        tree.close_late()

    def close_soon(self) -> None:
        """Close it without waiting, for finalisers: whoever closes something of the tree does it, else this thread."""
        for departure in self.departures():
            departure.patience = 0.0
        self.tree.late.append(self)
        self.tree.close_late()

    def departures(self) -> list[Departure]:
        """Those of the open endpoints that close with it, each once; none of a forked child's parent."""
        if self.pointer is None or self.is_forked:
            return []
        found = {} if self.departure is None else {id(self.departure): self.departure}
        for child in list(self.children.values()):
            found |= {id(each): each for each in child.departures()}
        return list(found.values())

    def _close(self) -> None:
        # Held until the end: an owner that goes in the middle would close this a second time.
        owner = self.owner() if self.owner is not None else None
        failed: FabricError | None = None
        newest_first = list(reversed(self.children.values()))
        for child in sorted(newest_first, key=lambda child: child.last):
            try:
                child.close()
            except FabricError as error:
                failed = failed or error
        if failed is not None:
            # C still has children, so closing again must be possible.
            raise failed
        pointer = self.pointer
        if pointer is None:
            return
        if owner is not None:
            owner._closing()
        # From here on other threads find it closed.
        self.pointer = None
        try:
            self.close_pointer(pointer)
        except (Canceled, Closed):
            # What C says of an object that it has closed: in a call that was interrupted as it returned.
            if not self.interrupted:
                self.pointer = pointer
                raise
        except BaseException as error:
            self.pointer = pointer
            self.interrupted = not isinstance(error, FabricError)
            raise
        self._forget()

    def _forget(self) -> None:
        self.pointer = None
        owner = self.owner() if self.owner is not None else None
        if owner is not None:
            owner._closed()
        for parent in self.parents:
            parent.children.pop(id(self), None)
        _roots.pop(id(self), None)


def _part(handles: list[Handle], linger: float | None, *, holds_up: bool = True) -> Parting:
    return Parting(handles, linger, _progress_all, holds_up=holds_up)


def _progress_all() -> bool:
    """Move messages in every domain of the process that this thread may enter; whether anything happened."""
    moved = False
    for root in list(_roots.values()):
        for handle in list(root.children.values()):
            pointer = handle.pointer  # once: another thread may close it between two looks
            if handle.progress is not None and pointer is not None and not handle.is_forked:
                moved |= handle.progress(pointer) > 0
    return moved


# ------------------------------------------------------------------------------------------ the interpreter's end

_ended = 0  # the process whose objects were closed at its end
_before_exit_close: list[tuple[int, Callable[[], None]]] = []  # with the process that each is to be called in


def call_before_exit_close(function: Callable[[], None]) -> None:
    """Have a function called at the interpreter's end: what was posted has left, and nothing is closed yet.

    The newest is called first. What one raises is logged. A forked child does not call those of its parent.
    """
    ending.watch(_close_all)
    _before_exit_close.append((os.getpid(), function))


def _close_all() -> None:
    """Let leave what was posted, call who wants to be called, close everything."""
    global _ended
    if _ended == os.getpid():
        return
    _ended = os.getpid()
    parting = _part([each for each in reversed(list(_roots.values())) if not each.is_forked], None)
    interrupted = ending.sleep_through(parting.rounds(only_wait=True))
    for pid, function in reversed(_before_exit_close):
        try:
            if pid == _ended:
                function()
        except Exception:
            logger().exception("%r failed at the interpreter's end", function)
    if interrupted is None:
        interrupted = ending.sleep_through(parting.rounds())
    # Daemon threads may be on their way into a call, with the pointers that would be freed here. What they leave behind
    # has no name anywhere: it goes with the process.
    if not ending.other_threads_run():
        _close_roots()
    parting.warn()
    if interrupted is not None:
        raise interrupted


def _close_roots() -> None:
    for handle in reversed(list(_roots.values())):
        try:
            handle.close()
        except FabricError:
            # The process ends; the kernel takes back what C could not.
            continue


class ProcessBound:
    """Base of what means something in its own process only: it can be neither pickled nor copied."""

    __slots__ = ()

    _instead: str = "open one in the other process"
    """What a program sends in its place."""

    def __reduce_ex__(self, protocol: object) -> Any:
        raise InvalidArgument(
            f"{type(self).__name__} objects mean nothing outside their process",
            operation="pickle",
            remedy=self._instead,
        )


@contextmanager
def _telling(on_its_way: BaseException | None) -> Iterator[None]:
    """Around the close at the end of a block: an exception on its way out of the block goes on in place of another."""
    try:
        yield
    except NotSent as error:
        if on_its_way is None:
            raise
        warn_not_sent(error)
    except FabricError:
        if on_its_way is None:
            raise
        # The exception on its way is the cause worth seeing.


def _unsent_below(handle: Handle) -> str:
    """For the warning of a finaliser: how much is lost by it."""
    records = [each.unsent() for each in handle.departures()]
    count = sum(record.count for record in records if record is not None)
    return f": {count} operation{'s' if count != 1 else ''} had not left" if count else ""


class Resource(ProcessBound):
    """Base of everything that holds something in C."""

    __slots__ = ("__weakref__", "_core")

    _core: Handle

    _warns: bool = True

    def _own(self, core: Handle) -> None:
        self._core = core
        core.owner = weakref.ref(self)

    def _closing(self) -> None:
        """What the object does right before its C part goes; nothing by default."""

    def _closed(self) -> None:
        """What the object forgets once its C part is gone; nothing by default."""

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called, or a parent closed."""
        return not self._core.is_open

    def _handles(self) -> list[Handle]:
        """What :meth:`close` closes, in this order."""
        return [self._core]

    def close(self, *, linger: float | None = None) -> None:
        """Close it, and before it what was opened from it, newest first. A second call does nothing.

        Sends, injects, writes and atomics that were posted leave first, to peers that are up or connecting. What has
        not left in time ends as cancelled, as do receives. In a thread with a running event loop nothing is waited
        for: use :meth:`aclose`. In a forked child nothing happens: the object is the parent's.

        Parameters
        ----------
        linger : float, optional
            Seconds that it may take, for all endpoints together; 0: drop at once what has not left, and say nothing.
            Default: ``OFIPY_LINGER``, 10.

        Raises
        ------
        NotSent
            After everything was closed: what was posted and had not left.
        InvalidArgument
            When `linger` is negative or not a number.
        FabricError
            When C refuses, such as :class:`~ofipy.ThreadingError` from a thread that is not the domain's.
        """
        parting = _part(self._handles(), linger)
        try:
            for pause in parting.rounds():
                time.sleep(pause)
        except BaseException:
            # Ctrl-C ends the wait.
            parting.give_up()
            raise
        parting.finish()
        drain_log()

    async def aclose(self, *, linger: float | None = None) -> None:
        """Close it as :meth:`close` does, without holding up the event loop. Cancelling this ends the wait.

        Parameters
        ----------
        linger : float, optional
            Seconds, as of :meth:`close`.

        Raises
        ------
        NotSent, InvalidArgument, FabricError
            As :meth:`close`.
        """
        import asyncio

        parting = _part(self._handles(), linger, holds_up=False)
        try:
            for pause in parting.rounds():
                await asyncio.sleep(pause)
        except BaseException:
            parting.give_up()
            raise
        parting.finish()
        drain_log()

    def _pointer(self, operation: str) -> Any:
        """C's pointer.

        Raises
        ------
        Closed, ForkedError
            When there is none to use.
        """
        core = self._core
        pointer = core.pointer  # once: another thread may close it between two looks
        if pointer is None:
            raise Closed(f"the {core.kind} is closed", operation=operation)
        if core.is_forked:
            raise ForkedError(
                f"the {core.kind} belongs to the parent process",
                operation=operation,
                remedy="open a new one in this process",
            )
        return pointer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _telling(error):
            self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _telling(error):
            await self.aclose()

    def __del__(self) -> None:
        core: Handle | None = getattr(self, "_core", None)
        if core is None or core.pointer is None or core.is_forked or sys.is_finalizing():
            return
        # A finaliser has nobody to tell of a failure; the parent's close tries again.
        try:
            try:
                if self._warns:
                    warnings.warn(
                        f"unclosed {core.kind} {self!r}{_unsent_below(core)}",
                        ResourceWarning,
                        source=self,
                        stacklevel=2,
                    )
            finally:
                core.close_soon()
        except (FabricError, MemoryError):
            pass
