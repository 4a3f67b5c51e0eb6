# SPDX-License-Identifier: BSD-3-Clause
"""What ``map`` and ``starmap`` do over any executor: submit, and hand out results one by one."""

import itertools
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["chunks_of", "in_order", "run_chunk", "unordered"]

T = TypeVar("T")
Submit = Callable[[tuple[Any, ...]], Future[T]]
"""Submits the call with these arguments."""


def in_order(
    submit: Submit[T], calls: Iterable[tuple[Any, ...]], timeout: float | None, ahead: int | None
) -> Iterator[T]:
    """Submit calls, and return an iterator over their results, in the order of the calls.

    Parameters
    ----------
    submit : callable
        Submits one.
    calls : iterable of tuple
        The arguments of each.
    timeout : float, optional
        Seconds from now on within which each result must be here.
    ahead : int, optional
        How many calls are submitted before their results are asked for; None: all, now.
    """
    end = _end_of(timeout)
    rest = iter(calls)
    futures = deque(submit(each) for each in itertools.islice(rest, ahead))

    def results() -> Iterator[T]:
        try:
            while futures:
                result = _result_of(futures.popleft(), end)
                futures.extend(submit(each) for each in itertools.islice(rest, 1))
                yield result.pop()
        finally:
            _cancel(futures)

    return results()


def unordered(
    submit: Submit[T], calls: Iterable[tuple[Any, ...]], timeout: float | None, ahead: int | None
) -> Iterator[T]:
    """As :func:`in_order`, with each result as soon as it is here."""
    end = _end_of(timeout)
    rest = iter(calls)
    ended: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()
    waiting: set[Future[T]] = set()

    def submit_some(number: int | None) -> None:
        for each in itertools.islice(rest, number):
            future = submit(each)
            waiting.add(future)
            future.add_done_callback(ended.put)

    submit_some(ahead)

    def results() -> Iterator[T]:
        try:
            while waiting:
                try:
                    future = ended.get(timeout=_left_until(end))
                except queue.Empty:
                    raise TimeoutError from None
                waiting.discard(future)
                submit_some(1)
                result = _result_of(future, end)
                del future
                yield result.pop()
        finally:
            _cancel(waiting)

    return results()


def _end_of(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout


def _left_until(end: float) -> float | None:
    return None if end == math.inf else max(0.0, end - time.monotonic())


def _result_of(future: "Future[T]", end: float) -> list[T]:
    """The result, in a list that the caller empties: nobody else refers to it while the program works with it."""
    try:
        return [future.result(_left_until(end))]
    except TimeoutError:
        future.cancel()
        raise
    finally:
        del future


def _cancel(futures: Iterable["Future[Any]"]) -> None:
    for future in list(futures):
        future.cancel()


def chunks_of(calls: Iterable[tuple[Any, ...]], size: int) -> Iterator[tuple[list[tuple[Any, ...]]]]:
    """The arguments of :func:`run_chunk`, behind the function: lists of several calls' arguments."""
    rest = iter(calls)
    while chunk := list(itertools.islice(rest, size)):
        yield (chunk,)


def run_chunk(function: Callable[..., T], chunk: list[tuple[Any, ...]]) -> list[T]:
    """Several calls as one task."""
    return [function(*arguments) for arguments in chunk]
