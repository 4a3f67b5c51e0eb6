# SPDX-License-Identifier: BSD-3-Clause
"""What a group that broke says about it."""

from __future__ import annotations

import errno as codes
from typing import Any

from ofipy._base.atomic_types import AtomicOp, Datatype
from ofipy._base.binding import failure, ffi, lib
from ofipy._base.errors import FabricError, GroupBroken
from ofipy._base.flags import Cap, EndpointType, Order
from ofipy._discovery.info import Info
from ofipy._objects.endpoint import Endpoint

__all__ = ["broken_group", "describe_mismatch", "refused_group"]

_SIGNATURE = 8  # bytes of remote CQ data that each message of a group has
_KINDS = (
    *("barrier", "broadcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"),
    *("reduce_scatter", "scan", "exscan"),
)


def _call_text(signature: int) -> str:
    """A call, from what its messages have as remote CQ data."""
    kind, op, size = signature >> 60, signature >> 55 & 31, signature & (1 << 40) - 1
    text = _KINDS[kind] if kind < len(_KINDS) else "an unknown call"
    if op:
        number = signature >> 50 & 31
        names = {int(each): str(each.dtype) for each in Datatype} | {int(lib.OFP_BFLOAT16): "bfloat16"}
        text += f" {AtomicOp(op - 1).name.lower()} of {names.get(number, 'an unknown type')}"
    return f"{text}, {size} bytes" if size else text


def describe_mismatch(state: Any, rank: int) -> str | None:
    """Who made which call, None where it is not known."""
    if state.error != lib.OFP_EMISMATCH or state.rank == lib.OFP_PEER_ANY or state.mine == state.theirs:
        return None
    mine, theirs = _call_text(state.mine), _call_text(state.theirs)
    if mine == theirs:
        mine, theirs = f"{mine} with one root or counts=", f"{theirs} with other ones"
    return f"call {state.sequence}: rank {rank} made {mine}; rank {state.rank} made {theirs}"


def broken_group(state: Any, rank: int, operation: str, provider: str) -> GroupBroken:
    """The error of a group that did not break by an error."""
    ranks: tuple[int, ...] = tuple(state.lost[0 : state.lost_count])
    reason, remedy = None, "make a group of those that agree: shrink()"
    if state.cause == lib.OFP_GROUP_CAUSE_ABORT:
        reason = ffi.string(state.reason).decode(errors="replace")
        text = f"rank {state.rank} aborted the group{': ' if reason else ''}{reason}"
    elif state.cause == lib.OFP_GROUP_CAUSE_EXPELLED:
        ranks = (rank,)
        text = f"the other members take rank {rank}, which is this one, for dead"
        remedy = "end this process, or make a new group with the others"
    else:
        text = "minority: at most half of the members can be reached, and the group has several hosts"
        remedy = "end this process, or make a new group when the hosts reach each other"
    error = GroupBroken(
        text,
        errno=codes.ECONNABORTED,
        operation=operation,
        provider=provider,
        remedy=remedy,
    )
    error.ranks, error.abort_reason = ranks, reason
    return error


def refused_group(code: int, endpoint: Endpoint[Any]) -> FabricError:
    """Why an endpoint cannot have a group."""
    info, remedy = endpoint.info, 'open it with ep_type="rdm"'
    if abs(code) == codes.EBUSY:
        text = "a posted receive accepts tags that messages of groups have here, as one that ignores all bits does"
        remedy = "make the first group before you post it, or cancel it and post it again"
    elif info.ep_type is EndpointType.MSG:
        text = "an endpoint of type msg has one peer, and that of a group reaches all members"
    elif info.ep_type is EndpointType.DGRAM:
        text = "datagrams may be lost, and a collective waits for each of its messages"
    else:
        text = f"this endpoint has no groups: {_lacking(info)}"
        remedy = "use shm, tcp, verbs, link or ofi:tcp"
    return failure(code, text=text, remedy=remedy, operation="group", provider=endpoint.provider)


def _lacking(info: Info) -> str:
    if not info.caps & Cap.DIRECTED_RECV:
        return "its receives cannot name a source"
    if not info.msg_order & Order.SAS:
        return "its messages have no order"
    if info.cq_data_size < _SIGNATURE:
        return f"remote CQ data have {info.cq_data_size} bytes, and {_SIGNATURE} are needed"
    return "its provider has no channel for their messages; the log may say why"
