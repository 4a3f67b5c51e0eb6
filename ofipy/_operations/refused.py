# SPDX-License-Identifier: BSD-3-Clause
"""Why the core refused an operation: its answer is a number, and what it means follows from the record."""

import errno as codes
from collections.abc import Callable
from typing import Any

from ofipy._base.atomic_types import AtomicOp, Datatype
from ofipy._base.binding import check, failure, ffi, lib
from ofipy._base.errors import FabricError
from ofipy._base.flags import Cap, EndpointType, Flag, Op
from ofipy._discovery.domain import Domain
from ofipy._discovery.info import Info

__all__ = ["check_defaults", "check_option", "refusal"]

Why = tuple[str, str | None]
"""What is wrong, and what to do."""

_RECEIVES = (Op.RECV, Op.TRECV)
_MESSAGES = (Op.SEND, Op.TSEND, *_RECEIVES)
_RMA = (Op.READ, Op.WRITE)
_REDUCTIONS = (Op.ALLREDUCE, Op.REDUCE_SCATTER, Op.REDUCE)
_COLLECTIVES = (Op.BARRIER, Op.BROADCAST, Op.ALLTOALL, Op.ALLGATHER, Op.SCATTER, Op.GATHER, *_REDUCTIONS)
_COMPARING = range(AtomicOp.CSWAP, AtomicOp.MSWAP + 1)
_ALWAYS = Flag.COMPLETION | Flag.MORE


_NO_DEFAULTS = (
    "flags that cannot be the default of every operation: of sends inject, completion and the levels can, of receives "
    "completion and multi_recv"
)


def refusal(
    code: int, record: Any, *, domain: Domain, operation: str, peer: str | None = None
) -> FabricError:
    """Make the exception for records of which the core answered the first with an error code, of either sign."""
    explain = _EXPLANATIONS.get(abs(code))
    text, remedy = (explain(record[0], domain.info) if explain else None) or (None, None)
    return failure(code, operation=operation, provider=domain.provider, peer=peer, text=text, remedy=remedy)


def check_option(result: int, name: str, *, operation: str, provider: str) -> None:
    """Raise what the core said of an option, unless it took it."""
    if result == -codes.ENOPROTOOPT:
        text, remedy = f"there is no option {name} here", "ep.option() names them"
    elif result == -codes.EPERM:
        text, remedy = f"{name} can only be read", None
    elif result == -codes.EINVAL and name.endswith("_flags"):
        text, remedy = _NO_DEFAULTS, None
    else:
        check(result, operation=operation, provider=provider)
        return
    raise failure(result, operation=operation, provider=provider, text=text, remedy=remedy)


def check_defaults(result: int, *, operation: str, provider: str) -> None:
    """Raise what the core said of default flags, unless it took them."""
    text = _NO_DEFAULTS if result == -codes.EINVAL else None
    if result < 0:
        raise failure(result, operation=operation, provider=provider, text=text)


def _names(flags: int) -> str:
    known = Flag(flags & sum(Flag))
    names = [str(each.name).lower() for each in known]
    return ", ".join(names + [hex(flags & ~known.value)] * bool(flags & ~known.value))


def _remote_lengths(record: Any) -> list[int]:
    segments = ffi.cast("struct ofp_remote_segment *", record.remote_segments)
    # The count may be what was refused, so no further than the core itself reads.
    count = record.remote_segment_count if record.remote_segments else 0
    return [int(segments[place].length) for place in range(min(count, lib.OFP_SEGMENT_LIMIT))]


def _invalid(record: Any, info: Info) -> Why | None:
    if record.op not in set(Op):
        return f"op={record.op}; an Op is meant", None
    op = Op(record.op)
    allowed = lib.ofp_operation_allowed_flags(op)
    if wrong := record.flags & ~allowed:
        return f"flags {_names(wrong)} do not go with it", f"known are {_names(allowed)}"
    if op in _RECEIVES and record.flags & Flag.BOUND and record.peer == lib.OFP_PEER_ANY:
        return "incarnation= of a receive from anyone", "name the peer whose incarnation it is"
    if op in _RECEIVES and (mode := record.flags & ~(_ALWAYS.value)):
        return f"flags {_names(mode)} do not go together", None
    if op in _MESSAGES:
        return None
    if op in _COLLECTIVES:
        return _no_such_collective(record, op)
    if record.flags & Flag.DEVICE_ATOMIC:
        return "atomics of the device are of one element, at an address that is a multiple of its size", None
    size = 1 if op in _RMA else Datatype(record.datatype).dtype.itemsize
    lengths = _remote_lengths(record)
    for length in lengths or [record.length]:
        if length % size:
            return f"a piece of {length} bytes at the peer; whole elements of {size} bytes are meant", None
    if lengths:
        return f"{sum(lengths)} bytes at the peer are not as many as here", None
    return None


def _no_such_collective(record: Any, op: Op) -> Why:
    size = lib.ofp_reduction_size(record.atomic_op, record.datatype) if op in _REDUCTIONS else 1
    if record.length % size:
        return f"{record.length} bytes; whole elements of {size} bytes are meant", None
    return f"root {record.tag} is no rank of the group, or source and target overlap in part", None


def _no_collective(record: Any) -> Why:
    if record.segment_count or record.remote_segment_count:
        return "a collective has no segments", "name its memory by region, offset and length"
    what, kind = _name_atomic(record)
    return f"{what} on {kind} is no reduction", None


def _no_group(record: Any, info: Info) -> Why | None:
    if record.op not in _COLLECTIVES:
        return None
    return f"the endpoint has no group of number {record.peer}", "peer of a collective is group.number"


def _unsupported(record: Any, info: Info) -> Why | None:
    op = Op(record.op)
    if op in _COLLECTIVES:
        return _no_collective(record)
    if record.flags & Flag.BOUND:
        return _no_incarnations(info)
    needed = Cap(lib.ofp_operation_capability(op))
    if needed == Cap.ATOMIC and record.flags & Flag.DEVICE_ATOMIC:
        needed = Cap.DEVICE_ATOMIC
    elif needed == Cap.ATOMIC and info.caps & Cap.DEVICE_ATOMIC and not info.caps & Cap.ATOMIC:
        return "only the device carries out atomics here", "register the memory with access='device_atomic'"
    for cap, asked in (
        (needed, True),
        (Cap.FENCE, record.flags & Flag.FENCE and op not in _RECEIVES),
        (Cap.MULTI_RECV, record.flags & Flag.MULTI_RECV),
    ):
        if asked and not info.caps & cap:
            return f"without the capability {str(cap.name).lower()}", "choose another provider: ofipy info"
    return _no_such_atomic(record, op) if needed & (Cap.ATOMIC | Cap.DEVICE_ATOMIC) else None


def _no_incarnations(info: Info) -> Why:
    if info.ep_type is EndpointType.MSG:
        return "incarnation=: a connection of type msg is one incarnation", "leave it out"
    if info.ep_type is EndpointType.DGRAM:
        return "incarnation=: datagrams have no connections", "use endpoints of type rdm"
    if info.offloads_matching:
        return (
            "incarnation=: this transport matches receives itself, and does not say when a peer was lost",
            "use a provider of ofipy's own: shm, tcp, verbs or link",
        )
    return (
        "incarnation=: a receive context has peers of several endpoints",
        "receive with an endpoint of its own",
    )


def _name_atomic(record: Any) -> tuple[Any, Any]:
    what = AtomicOp(record.atomic_op).name.lower() if record.atomic_op in set(AtomicOp) else record.atomic_op
    return what, Datatype(record.datatype).dtype if record.datatype in set(Datatype) else record.datatype


def _no_such_atomic(record: Any, op: Op) -> Why:
    what, kind = _name_atomic(record)
    remedy = "domain.atomic_valid() and ofipy info --atomics tell what there is"
    if record.flags & Flag.DEVICE_ATOMIC:
        return (
            f"{what} on {kind} is not among the operations of the device",
            "domain.atomic_valid(…, device=True) tells what there is; others need memory that is not device_atomic",
        )
    if op != Op.COMPARE_ATOMIC and record.atomic_op in _COMPARING:
        remedy = "compare_atomic() has it"
    elif op == Op.ATOMIC and record.atomic_op == AtomicOp.READ:
        remedy = "fetch_atomic() has it"
    return f"{what} on {kind} is not among its operations", remedy


def _out_of_range(record: Any, info: Info) -> Why | None:
    if record.segment_count:
        return "a segment is not within its region", None
    return f"{record.length} bytes at {record.offset} are not within region {record.region}", None


def _kept_tag(record: Any, info: Info) -> Why | None:
    return (
        f"tag {record.tag:#x} has the bit that tags of groups have, and the endpoint has had a group",
        "tags below 2**59 never have it",
    )


def _no_memory(record: Any, info: Info) -> Why | None:
    for name in ("segment", "remote_segment"):
        if (count := getattr(record, f"{name}_count")) and not getattr(record, f"{name}s"):
            return f"{name}_count={count} without {name}s", None
    return f"{record.length} bytes at address 0", None


def _too_long(record: Any, info: Info) -> Why | None:
    if record.op in _MESSAGES:
        most = info.max_msg_size
    else:
        most = info.max_rma_size if record.op in _RMA else info.max_atomic_size
    return f"more than {most} bytes, the most of one operation over this transport", "send it in pieces"


_EXPLANATIONS: dict[int, Callable[[Any, Info], Why | None]] = {
    codes.EINVAL: _invalid,
    codes.EOPNOTSUPP: _unsupported,
    codes.EDOM: _kept_tag,
    codes.ERANGE: _out_of_range,
    codes.EFAULT: _no_memory,
    codes.EMSGSIZE: _too_long,
    codes.ENOENT: _no_group,
}
