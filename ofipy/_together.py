# SPDX-License-Identifier: BSD-3-Clause
"""Several requests with one call."""

import errno as codes
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ofipy._binding import drain_log, failure, lib, nanoseconds
from ofipy._errors import FabricError, InvalidArgument, TimedOut
from ofipy._request import PreparedRequest, Request, RunningRequest

__all__ = ["start", "wait_all", "wait_any"]

_start = lib.ofp_start
_start_two = lib.ofp_start_two
_start_many = lib.ofp_start_many
_NOT_YET = (-codes.EAGAIN, -codes.EINTR)


def start(first: PreparedRequest, second: PreparedRequest | None = None, /, *others: PreparedRequest) -> None:
    """Start prepared operations, several with one call, in the order given.

    Parameters
    ----------
    first, second, *others : PreparedRequest
        Idle ones.

    Raises
    ------
    Busy
        When one is running; those before it have been started.
    Closed
        When the endpoint of one is closed.
    """
    if second is None:
        if _start(first._handle) == 0:
            return
        _start_rest([first])
    elif not others:
        # One call, and cheaper than an array of two.
        started = _start_two(first._handle, second._handle)
        if started != 2:
            _start_rest([second] if started == 1 else [first, second])
    else:
        _start_rest([first, second, *others])


def _start_rest(requests: Sequence[PreparedRequest]) -> None:
    """Start them, again and again while there is no room, and say why one cannot be started."""
    begun = 0
    while begun < len(requests):
        handles = [request._handle for request in requests[begun:]]
        result = _start_many(handles, len(handles))
        if result < 0 and result not in _NOT_YET:
            raise requests[begun]._not_started(result)
        begun += max(result, 0)


def wait_all(requests: Iterable[Request], *, timeout: float | None = None) -> list[Any]:
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
        When the time is over; the operations go on.
    FabricError
        The first failure, in the order given, once all have finished.
    """
    every = list(requests)
    deadline = None if timeout is None else time.monotonic() + timeout
    failed: FabricError | None = None
    results = []
    _wait_for_all(every, deadline)
    for request in every:
        try:
            if deadline is None:
                results.append(request.wait())
            else:
                results.append(request.wait(timeout=max(deadline - time.monotonic(), 0.0)))
        except FabricError as error:
            if request._handle:  # it has not finished
                running = sum(not each.done for each in every)
                raise TimedOut(
                    f"{running} of {len(every)} requests have not finished within {timeout:g} s",
                    **request._context(),
                ) from None
            failed = failed or error
    if failed is not None:
        raise failed
    return results


def _wait_for_all(requests: Sequence[Request], deadline: float | None) -> None:
    """Wait within C for as long as nothing needs a look from here: one after the other would return for each.

    It may end early, for a signal, a closed endpoint, several domains: waiting for each tells more. Other kinds of
    request are left to that as well: one may be idle, another needs more than one step.
    """
    running = [request for request in requests if type(request) is RunningRequest and request._handle]
    if len(running) < 2 or any(request._endpoint._handle is None for request in running):
        return
    handles = [request._handle for request in running]
    left = -1
    finished = 0
    while finished == 0 and left != 0:
        if deadline is not None:
            left = nanoseconds(max(deadline - time.monotonic(), 0.0))
        finished = lib.ofp_requests_wait(handles, len(handles), True, left)
        if lib.ofp_log_waiting():
            drain_log()


def wait_any(requests: Iterable[Request], *, timeout: float | None = None) -> Request:
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
    every = list(requests)
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
        if timeout is not None and left == 0 and not any(request.test() for request in every):
            raise TimedOut(
                f"none of {len(every)} requests has finished within {timeout:g} s", **every[0]._context()
            )


def _wait_for_any(requests: Sequence[Request], left: int) -> None:
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
