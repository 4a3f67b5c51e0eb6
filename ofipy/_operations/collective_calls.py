# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of collectives of arrays: checked, and as C takes them."""

from __future__ import annotations

from typing import Any

from ofipy._base.atomic_types import AtomicOp
from ofipy._base.binding import lib
from ofipy._base.errors import InvalidArgument
from ofipy._base.limits import whole_number
from ofipy._memory.buffers import LocalMemory
from ofipy._operations.collective_memory import Buffer, Counts, element_counts, parse_op, reduced_type
from ofipy._operations.collective_start import Call, Members

__all__ = [
    "block_of",
    "describe_alltoall",
    "describe_barrier",
    "describe_broadcast",
    "describe_gather",
    "describe_gathered",
    "describe_reduce_scatter",
    "describe_scatter",
    "describe_vector",
    "own_block",
    "root_rank",
]


def root_rank(group: Members, root: int, name: str) -> int:
    """The root's rank, checked."""
    return whole_number("root", root, 0, group.size - 1, operation=name)


def _buffer(group: Members, buffer: Any, writable: bool, name: str) -> Buffer:
    return Buffer(buffer, group.endpoint.domain, writable, name)


def block_of(buffer: Buffer, offset: int, length: int) -> LocalMemory:
    """A part of a buffer."""
    memory = buffer.memory
    return LocalMemory(memory.region, memory.offset + offset, length, None, 0, memory.keep)


def _needed(name: str, argument: str, who: str) -> InvalidArgument:
    return InvalidArgument(f"{argument} is None; {who} has to give a buffer there", operation=name)


def _check_length(name: str, what: str, length: int, wanted: int) -> None:
    if length != wanted:
        raise InvalidArgument(f"{what} has {length} bytes, and {wanted} are meant", operation=name)


# whole vectors


def describe_barrier(group: Members) -> Call:
    return Call("barrier", lib.OFP_COLLECTIVE_BARRIER)


def describe_broadcast(group: Members, a: Any, root: int) -> Call:
    name = "broadcast"
    root = root_rank(group, root, name)
    buffer = _buffer(group, a, group.rank != root, name)
    return Call(name, lib.OFP_COLLECTIVE_BROADCAST, a, count=buffer.length, target=buffer.memory, root=root)


def describe_vector(
    group: Members, name: str, kind: int, a: Any, into: Any, op: str | AtomicOp, dtype: Any, root: int | None
) -> Call:
    """A reduction of whole vectors; `root` is the only one that gets it, None: all do."""
    operation = parse_op(op, name)
    root = None if root is None else root_rank(group, root, name)
    gets = root is None or root == group.rank
    source = _buffer(group, a, gets and into is None, name)
    datatype = reduced_type(source, dtype, operation, name)
    count = source.length // int(lib.ofp_reduction_size(operation, datatype))
    target = source if into is None else _buffer(group, into, gets, name)
    if gets:
        _check_length(name, "into", target.length, source.length)
    return Call(
        name,
        kind,
        None if not gets else a if into is None else into,
        count=count,
        source=source.memory,
        target=target.memory,
        root=root or 0,
        op=operation,
        datatype=datatype,
    )


# blocks


def describe_gather(group: Members, a: Any, into: Any, counts: Counts | None, root: int) -> Call:
    name = "gather"
    root = root_rank(group, root, name)
    if group.rank == root:
        return describe_gathered(group, name, lib.OFP_COLLECTIVE_GATHER, a, into, counts, root)
    source = _buffer(group, a, False, name)
    blocks = None if counts is None else element_counts(counts, group.size, source.itemsize, name)
    if blocks is not None:
        _check_length(name, "the own block", source.length, blocks[group.rank])
    return Call(
        name,
        lib.OFP_COLLECTIVE_GATHER,
        count=source.length,
        source=source.memory,
        root=root,
        target_counts=blocks,
    )


def describe_gathered(
    group: Members, name: str, kind: int, a: Any, into: Any, counts: Counts | None, root: int = 0
) -> Call:
    """Of a member that gets all blocks."""
    all_blocks = into if into is not None else a
    if all_blocks is None:
        raise _needed(name, "a", f"rank {group.rank}")
    target = _buffer(group, all_blocks, True, name)
    blocks = None if counts is None else element_counts(counts, group.size, target.itemsize, name)
    own, offset = own_block(group, target, blocks, name)
    source = block_of(target, offset, own)
    if into is not None:
        given = _buffer(group, a, False, name)
        _check_length(name, "the own block", given.length, own)
        source = given.memory
    return Call(
        name,
        kind,
        all_blocks,
        count=own,
        source=source,
        target=target.memory,
        root=root,
        target_counts=blocks,
    )


def own_block(group: Members, buffer: Buffer, blocks: Any, name: str) -> tuple[int, int]:
    """Length and offset of this member's block among all blocks of a buffer."""
    if blocks is not None:
        _check_length(name, "the buffer of all blocks", buffer.length, sum(blocks))
        return int(blocks[group.rank]), sum(blocks[rank] for rank in range(group.rank))
    own, rest = divmod(buffer.length, group.size)
    if rest or own % buffer.itemsize:
        raise InvalidArgument(
            f"{buffer.length} bytes are no {group.size} equal blocks",
            operation=name,
            remedy="say counts= if blocks differ in length",
        )
    return own, own * group.rank


def describe_scatter(group: Members, a: Any, into: Any, counts: Counts | None, root: int) -> Call:
    name, kind = "scatter", lib.OFP_COLLECTIVE_SCATTER
    root = root_rank(group, root, name)
    if group.rank != root:
        if into is None:
            raise _needed(name, "into", "each rank but the root")
        target = _buffer(group, into, True, name)
        blocks = None if counts is None else element_counts(counts, group.size, target.itemsize, name)
        if blocks is not None:
            _check_length(name, "into", target.length, blocks[group.rank])
        return Call(
            name, kind, into, count=target.length, target=target.memory, root=root, source_counts=blocks
        )
    if a is None:
        raise _needed(name, "a", "the root")
    source = _buffer(group, a, False, name)
    blocks = None if counts is None else element_counts(counts, group.size, source.itemsize, name)
    own, offset = own_block(group, source, blocks, name)
    memory = block_of(source, offset, own)
    if into is not None:
        target = _buffer(group, into, True, name)
        _check_length(name, "into", target.length, own)
        memory = target.memory
    return Call(
        name,
        kind,
        a if into is None else into,
        count=own,
        source=source.memory,
        target=memory,
        root=root,
        source_counts=blocks,
    )


def describe_alltoall(
    group: Members, a: Any, into: Any, counts: Counts | None, into_counts: Counts | None
) -> Call:
    name = "alltoall"
    source = _buffer(group, a, into is None, name)
    target = source if into is None else _buffer(group, into, True, name)
    if into is None and into_counts is None:
        into_counts = counts
    if (counts is None) != (into_counts is None):
        raise InvalidArgument("counts= and into_counts= are meant, or neither", operation=name)
    given = None if counts is None else element_counts(counts, group.size, source.itemsize, name)
    got = (
        None
        if into_counts is None
        else element_counts(into_counts, group.size, target.itemsize, name, "into_counts")
    )
    own, _ = own_block(group, source, given, name)
    received, _ = own_block(group, target, got, name)
    if given is None:
        _check_length(name, "into", target.length, source.length)
    elif own != received:
        raise InvalidArgument(
            f"rank {group.rank} gives itself {own} bytes and gets {received}", operation=name
        )
    return Call(
        name,
        lib.OFP_COLLECTIVE_ALLTOALL,
        a if into is None else into,
        count=0 if given is not None else own,
        source=source.memory,
        target=target.memory,
        source_counts=given,
        target_counts=got,
    )


def describe_reduce_scatter(
    group: Members, a: Any, into: Any, counts: Counts | None, op: str | AtomicOp, dtype: Any
) -> Call:
    name = "reduce_scatter"
    operation = parse_op(op, name)
    source = _buffer(group, a, into is None, name)
    datatype = reduced_type(source, dtype, operation, name)
    size = int(lib.ofp_reduction_size(operation, datatype))
    blocks = None if counts is None else element_counts(counts, group.size, size, name)
    own, offset = own_block(group, source, blocks, name)
    memory = block_of(source, offset, own)
    if own % size:
        raise InvalidArgument(f"a block of {own} bytes has no whole elements", operation=name)
    if into is not None:
        target = _buffer(group, into, True, name)
        _check_length(name, "into", target.length, own)
        memory = target.memory
    return Call(
        name,
        lib.OFP_COLLECTIVE_REDUCE_SCATTER,
        a if into is None else into,
        count=own // size,
        source=source.memory,
        target=memory,
        op=operation,
        datatype=datatype,
        source_counts=None if counts is None else element_counts(counts, group.size, 1, name),
    )
