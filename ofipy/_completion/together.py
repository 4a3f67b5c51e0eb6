# SPDX-License-Identifier: BSD-3-Clause
"""Several requests with one call."""

import errno as codes
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from ofipy._base.binding import drain_log, failure, lib, nanoseconds
from ofipy._base.errors import FabricError, InvalidArgument, TimedOut
from ofipy._completion.request import PreparedRequest, Request, no_room, queue_is_full
from ofipy._requests import loop_is_running, outcomes, start, start_some

__all__ = ["start", "start_all", "wait_all", "wait_any"]

T = TypeVar("T")
R = TypeVar("R", bound=Request[Any])

_NOT_YET = (-codes.EAGAIN, -codes.EINTR)
_BEYOND = -2  # a time-out: what exceeds the transmit queue waits in the core


def start_all(requests: tuple[PreparedRequest, ...], timeout: float | None) -> None:
    """Start them in this order, again and again while there is no room, and say why one cannot be started."""
    left = nanoseconds(timeout)
    deadline = time.monotonic_ns() + left
    while requests:
        started = start_some(requests, 0)
        if started in _NOT_YET:
            first = requests[0]
            looping = loop_is_running()
            started = start_some((first,), _BEYOND if looping else left)
            if looping and started == -codes.EAGAIN:
                raise queue_is_full(first._endpoint, first._operation)
        if started < 0 and started not in _NOT_YET:
            raise requests[0]._not_started(started)
        requests = requests[max(started, 0) :]
        if lib.ofp_log_waiting():
            drain_log()
        if requests and started < 0 and timeout is not None:
            left = deadline - time.monotonic_ns()
            if left <= 0:
                raise no_room(timeout, **requests[0]._context())


def wait_all(requests: Iterable[Request[T]], timeout: float | None = None) -> list[T]:
    """Wait until all requests have finished.

    Parameters
    ----------
    requests : iterable of Request
        Of any endpoints.
    timeout : float, optional
        Seconds for all of them together; None: for ever.

    Returns
    -------
    list
        What each one's ``wait()`` returns, in the order given.

    Raises
    ------
    TimedOut
        When the time is over; the operations go on. Its cause is the first failure of those that have finished.
    FabricError
        The first failure, in the order given, once all have finished.
    """
    # No list: without memory for one CPython before 3.13 keeps the program's own list for ever.
    every = tuple(requests)
    left = nanoseconds(timeout)
    deadline = time.monotonic_ns() + left
    failed: FabricError | None = None
    _wait_for_all(every, None if timeout is None else deadline)
    results: list[T] = outcomes(every)
    for request in every[len(results) :]:
        if timeout is not None:
            left = max(deadline - time.monotonic_ns(), 0)
        if not request._await(None if timeout is None else left / 1e9):
            running = sum(not each.done for each in every)
            # What has failed may be why the others cannot finish.
            failed = next(filter(None, (each.exception() for each in every)), None)
            raise TimedOut(
                f"{running} of {len(every)} requests have not finished within {timeout:g} s",
                **request._context(),
            ) from failed
        try:
            results.append(request._result())
        except FabricError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return results


def _wait_for_all(requests: Sequence[Request[Any]], deadline: int | None) -> None:
    """Wait within C for as long as nothing needs a look from here: one after the other would return for each.

    It may end early, for a signal, a closed endpoint, several domains: waiting for each tells more. Other kinds of
    request are left to that as well: one may be idle, another needs more than one step.
    """
    handles = [request._handle for request in requests if type(request) is Request and not request._over]
    if len(handles) < 2:
        return
    left, finished = -1, 0
    while finished == 0 and left != 0:
        if deadline is not None:
            left = max(deadline - time.monotonic_ns(), 0)
        finished = lib.ofp_requests_wait(handles, len(handles), True, left)
        if lib.ofp_log_waiting():
            drain_log()


def wait_any(requests: Iterable[R], timeout: float | None = None) -> R:
    """Wait until one of the requests has finished.

    Parameters
    ----------
    requests : iterable of Request
        At least one, all of one domain.
    timeout : float, optional
        Seconds; None: for ever.

    Returns
    -------
    Request
        The first of those that have finished, in the order given, well or not: its ``wait()`` returns or
        raises at once.

    Raises
    ------
    TimedOut
        When the time is over; the operations go on.
    InvalidArgument
        When there is none, or they are of several domains.
    """
    every = tuple(requests)  # as in wait_all()
    if not every:
        raise InvalidArgument("wait_any() of no request would wait for ever")
    left = nanoseconds(timeout)
    deadline = time.monotonic_ns() + left
    while True:
        for request in every:
            if request.done:
                return request
        if timeout is not None:
            left = max(deadline - time.monotonic_ns(), 0)
        _wait_for_any(every, left)
        # A last look, with progress: what came as the time ran out counts.
        if timeout is not None and left == 0 and not any(request.test() for request in every):
            raise TimedOut(
                f"none of {len(every)} requests has finished within {timeout:g} s", **every[0]._context()
            )


def _wait_for_any(requests: Sequence[Request[Any]], left: int) -> None:
    """Wait once, at most a second."""
    handles = [request._handle for request in requests]
    result = lib.ofp_requests_wait(handles, len(handles), False, left)
    if result == -codes.EXDEV:
        raise InvalidArgument(
            "wait_any() of requests of several domains", remedy="wait for each domain's apart"
        )
    if result < 0 and result not in _NOT_YET:
        raise failure(result, **requests[0]._context())
    if lib.ofp_log_waiting():
        drain_log()
