# SPDX-License-Identifier: BSD-3-Clause
"""Operations of one kind over several endpoints, so many under way, in a loop in C."""

import errno as codes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ofipy._base import binding
from ofipy._base.binding import check, drain_log
from ofipy._base.errors import InvalidArgument
from ofipy._base.measure_binding import ffi, lib
from ofipy._objects.endpoint import Endpoint

__all__ = ["LONGEST_LIST", "run_pipeline"]

LONGEST_LIST: int = lib.OFP_PIPELINE_LIST
"""Operations of one post, at most."""

Records = np.ndarray[Any, np.dtype[np.void]]


def run_pipeline(
    endpoints: Sequence[Endpoint],
    *,
    operations: Records | None = None,
    receives: Records | None = None,
    iterations: int,
    depth: int = 1,
    receive_depth: int = 1,
    post_list: int = 1,
    moderation: int = 1,
    posted: npt.NDArray[np.int64] | None = None,
    completed: npt.NDArray[np.int64] | None = None,
) -> float:
    """Do the operation of each endpoint again and again, and take what its peer sends meanwhile.

    Parameters
    ----------
    endpoints : sequence of Endpoint
        With one queue for all of them, that nobody else reads meanwhile.
    operations : ndarray of records, shape (endpoints,), optional
        What each does. Default: nothing.
    receives : ndarray of records, shape (endpoints,), optional
        What each receives into. The first `receive_depth` of each, or `iterations` if that is less, are posted
        already, with the endpoint's index as context. Default: nothing comes.
    iterations : int
        Of every operation, and of every receive.
    depth : int
        Operations under way of each endpoint.
    receive_depth : int
        Receives posted of each endpoint.
    post_list : int
        Operations of one post.
    moderation : int
        Every so manieth has a completion, at delivery; above 1 the endpoints have selective completion.
    posted, completed : ndarray of int64, shape (groups,), optional
        Nanoseconds after the start, in order, at which the first operation of each group was posted and its last one
        completed. The groups of an endpoint are as many as `iterations` / `moderation`, rounded up.

    Returns
    -------
    float
        Seconds.

    Notes
    -----
    Ctrl-C ends it within a second. Operations that are under way then stay so; close the endpoints.

    Raises
    ------
    InvalidArgument
        When there is no room for the times, a number is one that the loop cannot keep to, or the queue has rows of
        other operations.
    """
    count = len(endpoints)
    if not count or moderation < 1:
        raise InvalidArgument(
            f"{count} endpoints, a completion every {moderation} operations; 1 or more are meant",
            operation="run_pipeline",
        )
    groups = count * -(-iterations // moderation)
    for records in (operations, receives):
        if records is not None and records.nbytes != count * ffi.sizeof("struct ofp_operation"):
            raise InvalidArgument(
                f"{len(records)} records of {records.itemsize} bytes for {count} endpoints; "
                "one operation each is meant",
                operation="run_pipeline",
            )
    held = ffi.new("struct ofp_endpoint *[]", [each._pointer("run_pipeline") for each in endpoints])
    attributes = {
        "endpoints": held,
        "cq": endpoints[0].cq._pointer("run_pipeline"),
        "count": count,
        "operations": _records(operations),
        "receives": _records(receives),
        "iterations": iterations,
        "depth": depth,
        "receive_depth": receive_depth,
        "list": post_list,
        "moderation": moderation,
        "posted": _times(posted, groups),
        "completed": _times(completed, groups),
    }
    record = ffi.new("struct ofp_measure_pipeline_attr *", attributes)
    return _run(record, endpoints[0].provider) / 1e9


def _run(record: Any, provider: str) -> int:
    """Run to the end, in pieces between which Python looks at signals: nanoseconds."""
    pipeline = ffi.new("struct ofp_measure_pipeline **")
    try:
        check(lib.ofp_measure_pipeline_open(record, pipeline), operation="run_pipeline", provider=provider)
        while (elapsed := lib.ofp_measure_pipeline_run(pipeline[0])) == -codes.EINTR:
            if binding.lib.ofp_log_waiting():
                drain_log()
        return check(elapsed, operation="run_pipeline", provider=provider)
    finally:
        if pipeline[0] != ffi.NULL:
            lib.ofp_measure_pipeline_close(pipeline[0])


def _records(records: Records | None) -> Any:
    return ffi.NULL if records is None else ffi.from_buffer("struct ofp_operation[]", records)


def _times(times: npt.NDArray[np.int64] | None, groups: int) -> Any:
    if times is None:
        return ffi.NULL
    if times.size < groups:
        raise InvalidArgument(
            f"room for {times.size} times of {groups}; as many are meant", operation="run_pipeline"
        )
    return ffi.from_buffer("uint64_t[]", times, require_writable=True)
