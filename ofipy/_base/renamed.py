# SPDX-License-Identifier: BSD-3-Clause
"""Keywords of posting calls that have another name now; the former names work in this version, with a warning."""

import warnings

__all__ = ["remote_data_from", "room_timeout_from"]


def room_timeout_from(timeout: float) -> float:
    """What a caller means who passes ``timeout=`` to a posting call."""
    warnings.warn(
        "timeout= of a posting call only bounds the wait for room in a full transmit queue, and is called "
        "room_timeout= now; .wait(timeout=) bounds the wait for the operation",
        DeprecationWarning,
        stacklevel=3,
    )
    return timeout


def remote_data_from(data: int) -> int:
    """What a caller means who passes ``data=`` to a posting call."""
    warnings.warn(
        "data= of a posting call is called remote_data= now: the remote CQ data that travels with the message",
        DeprecationWarning,
        stacklevel=3,
    )
    return data
