# SPDX-License-Identifier: BSD-3-Clause
"""Flags of completion records."""

import enum

from ofipy._base.binding import lib
from ofipy._base.flags import Flags

__all__ = ["Completed", "describe_flags"]


class Completed(Flags, enum.IntFlag):
    """Flags of a completion record: what has finished."""

    __module__ = "ofipy"  # as programs import it

    SEND = lib.OFP_COMPLETED_SEND
    RECV = lib.OFP_COMPLETED_RECV
    READ = lib.OFP_COMPLETED_READ
    WRITE = lib.OFP_COMPLETED_WRITE
    ATOMIC = lib.OFP_COMPLETED_ATOMIC
    MSG = lib.OFP_COMPLETED_MSG
    TAGGED = lib.OFP_COMPLETED_TAGGED
    RMA = lib.OFP_COMPLETED_RMA
    REMOTE_READ = lib.OFP_COMPLETED_REMOTE_READ
    REMOTE_WRITE = lib.OFP_COMPLETED_REMOTE_WRITE
    REMOTE_CQ_DATA = lib.OFP_COMPLETED_REMOTE_CQ_DATA
    MULTI_RECV = lib.OFP_COMPLETED_MULTI_RECV
    """The multi-receive buffer is released; alone: no message came with it."""
    CLAIM = lib.OFP_COMPLETED_CLAIM


def describe_flags(flags: int) -> str:
    """Name of the operation that a completion is of, such as ``trecv``."""
    what = Completed(flags)
    verb = next(
        (
            name
            for name in ("SEND", "RECV", "ATOMIC", "READ", "WRITE", "REMOTE_READ", "REMOTE_WRITE")
            if what & Completed[name]
        ),
        "operation",
    )
    return ("t" if what & Completed.TAGGED else "") + verb.lower().replace("_", " ")
