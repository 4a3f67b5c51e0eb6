# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of a group: functions whose first argument is the group.

A group's methods of these names begin in C (:func:`begin_in_c`), which knows the arguments that most programs use, and
pass on to the functions what does not fit there.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ofipy._base.atomic_types import AtomicOp
from ofipy._base.binding import lib
from ofipy._operations.begun_in_c import method_text
from ofipy._operations.collective_asked import Ask, start_asked
from ofipy._operations.collective_calls import (
    describe_alltoall,
    describe_barrier,
    describe_broadcast,
    describe_gather,
    describe_gathered,
    describe_reduce_scatter,
    describe_scatter,
    describe_vector,
    root_rank,
)
from ofipy._operations.collective_memory import Counts
from ofipy._operations.collective_start import CollectiveRequest, Members, start_call
from ofipy._requests import collective

__all__ = [
    "allgather",
    "allreduce",
    "alltoall",
    "barrier",
    "begin_in_c",
    "broadcast",
    "exscan",
    "gather",
    "reduce",
    "reduce_scatter",
    "scan",
    "scatter",
]

_G = TypeVar("_G")

# Read once: an attribute of `lib` takes longer to find than a short collective may take.
_REDUCE, _ALLREDUCE = lib.OFP_COLLECTIVE_REDUCE, lib.OFP_COLLECTIVE_ALLREDUCE
_SCAN, _EXSCAN = lib.OFP_COLLECTIVE_SCAN, lib.OFP_COLLECTIVE_EXSCAN
_GATHER, _SCATTER = lib.OFP_COLLECTIVE_GATHER, lib.OFP_COLLECTIVE_SCATTER
_ALLGATHER, _ALLTOALL = lib.OFP_COLLECTIVE_ALLGATHER, lib.OFP_COLLECTIVE_ALLTOALL
_REDUCE_SCATTER = lib.OFP_COLLECTIVE_REDUCE_SCATTER


def begin_in_c(kind: type[_G]) -> type[_G]:
    """Let the methods of a class of groups begin in C, which goes on to the functions below where it must.

    Their signatures and their documentation are those of the functions.
    """
    functions = (
        barrier,
        broadcast,
        reduce,
        allreduce,
        gather,
        scatter,
        allgather,
        alltoall,
        reduce_scatter,
        scan,
        exscan,
    )
    for function in functions:
        name = function.__name__
        setattr(kind, name, collective(kind, name, function, method_text(function)))
    return kind


def barrier(self: Members) -> CollectiveRequest[None]:
    """Wait until every member has called this.

    Returns
    -------
    CollectiveRequest
        Finished when all have.
    """
    return start_call(self, describe_barrier(self))  # type: ignore[no-any-return]


def broadcast(self: Members, a: Any, *, root: int = 0) -> CollectiveRequest[Any]:
    """Copy the root's buffer to all members.

    Parameters
    ----------
    a : buffer
        What the root has; of the same size, and written, at the others.
    root : int
        Its rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns `a`.
    """
    return start_call(self, describe_broadcast(self, a, root))  # type: ignore[no-any-return]


def reduce(
    self: Members,
    a: Any,
    into: Any = None,
    *,
    op: str | AtomicOp = "sum",
    root: int = 0,
    dtype: Any = None,
) -> CollectiveRequest[Any]:
    """Combine the arrays of all members, element by element, into an array of the root's.

    Parameters
    ----------
    a : array
        Of the same shape and dtype everywhere.
    into : array, optional
        Where the root gets the result. Default: `a`, in place. Others need none.
    op : str or AtomicOp
        ``sum prod min max``, ``lor land lxor`` (0 or 1), ``bor band bxor`` (bits). A minimum or maximum with a NaN is
        a NaN.
    root : int
        Its rank.
    dtype : dtype or "bfloat16", optional
        Of the elements, where the buffer has no such dtype.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the array with the result, None at other ranks.
    """
    call = describe_vector(self, "reduce", _REDUCE, a, into, op, dtype, root)
    return start_call(self, call)  # type: ignore[no-any-return]


def allreduce(
    self: Members, a: Any, into: Any = None, *, op: str | AtomicOp = "sum", dtype: Any = None
) -> CollectiveRequest[Any]:
    """Combine the arrays of all members, and give the result to all: the same bits everywhere.

    Parameters
    ----------
    a, op, dtype
        As of :meth:`reduce`.
    into : array, optional
        Where the result goes. Default: `a`, in place.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the array with the result.
    """
    call = describe_vector(self, "allreduce", _ALLREDUCE, a, into, op, dtype, None)
    return start_call(self, call)  # type: ignore[no-any-return]


def scan(
    self: Members, a: Any, into: Any = None, *, op: str | AtomicOp = "sum", dtype: Any = None
) -> CollectiveRequest[Any]:
    """Combine the arrays of the ranks up to each one's own.

    Parameters
    ----------
    a, into, op, dtype
        As of :meth:`allreduce`.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the array with the result.
    """
    call = describe_vector(self, "scan", _SCAN, a, into, op, dtype, None)
    return start_call(self, call)  # type: ignore[no-any-return]


def exscan(
    self: Members, a: Any, into: Any = None, *, op: str | AtomicOp = "sum", dtype: Any = None
) -> CollectiveRequest[Any]:
    """Combine the arrays of the ranks below each one's own. The array of rank 0 stays as it is.

    Parameters
    ----------
    a, into, op, dtype
        As of :meth:`allreduce`.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the array with the result.
    """
    call = describe_vector(self, "exscan", _EXSCAN, a, into, op, dtype, None)
    return start_call(self, call)  # type: ignore[no-any-return]


def gather(
    self: Members, a: Any, into: Any = None, *, counts: Counts | Ask | None = None, root: int = 0
) -> CollectiveRequest[Any]:
    """Collect a block of each member in a buffer of the root's, in rank order.

    Parameters
    ----------
    a : buffer
        The own block. At the root without `into`: the buffer of all blocks, its own among them.
    into : buffer, optional
        Where the root gets all blocks. Others need none.
    counts : sequence of int or "ask", optional
        Elements of each rank's block, the same on all ranks, where blocks differ in length. ``"ask"``, on all ranks: no
        rank knows the others'. The result is a new array; the request's ``counts`` has the numbers.
    root : int
        Its rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the buffer of all blocks, None at other ranks.
    """
    if isinstance(counts, str):
        root = root_rank(self, root, "gather")
        return start_asked(self, "gather", _GATHER, a, into, asked=counts, root=root)
    return start_call(self, describe_gather(self, a, into, counts, root))  # type: ignore[no-any-return]


def scatter(
    self: Members, a: Any, into: Any = None, *, counts: Counts | None = None, root: int = 0
) -> CollectiveRequest[Any]:
    """Give each member its block of a buffer of the root's.

    Parameters
    ----------
    a : buffer or None
        All blocks, at the root; None at others.
    into : buffer, optional
        The own block. At the root without: it stays where it is.
    counts, root
        As of :meth:`gather`.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns `into`.
    """
    return start_call(self, describe_scatter(self, a, into, counts, root))  # type: ignore[no-any-return]


def allgather(
    self: Members, a: Any, into: Any = None, *, counts: Counts | Ask | None = None
) -> CollectiveRequest[Any]:
    """Collect a block of each member in a buffer of every member's, in rank order.

    Parameters
    ----------
    a : buffer
        The own block; without `into` the buffer of all blocks, with the own one in its place.
    into : buffer, optional
        All blocks.
    counts
        As of :meth:`gather`.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the buffer of all blocks.
    """
    if isinstance(counts, str):
        return start_asked(self, "allgather", _ALLGATHER, a, into, asked=counts)
    call = describe_gathered(self, "allgather", _ALLGATHER, a, into, counts)
    return start_call(self, call)  # type: ignore[no-any-return]


def alltoall(
    self: Members,
    a: Any,
    into: Any = None,
    *,
    counts: Counts | None = None,
    into_counts: Counts | Ask | None = None,
) -> CollectiveRequest[Any]:
    """Give block r of the own buffer to rank r, for every r.

    Parameters
    ----------
    a : buffer
        A block for each rank.
    into : buffer, optional
        A block of each rank. Default: `a`, in place.
    counts, into_counts : sequence of int, optional
        Elements of each block of `a` and `into`, where blocks differ in length. ``into_counts="ask"`` as `counts` of
        :meth:`gather`.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the buffer of the blocks received.
    """
    if isinstance(into_counts, str):
        return start_asked(self, "alltoall", _ALLTOALL, a, into, asked=into_counts, counts=counts)
    return start_call(self, describe_alltoall(self, a, into, counts, into_counts))  # type: ignore[no-any-return]


def reduce_scatter(
    self: Members,
    a: Any,
    into: Any = None,
    *,
    counts: Counts | None = None,
    op: str | AtomicOp = "sum",
    dtype: Any = None,
) -> CollectiveRequest[Any]:
    """Combine the arrays of all members, and give each member its block of the result.

    Parameters
    ----------
    a : array
        A block for each rank.
    into : array, optional
        The own block of the result. Default: its place in `a`.
    counts, op, dtype
        As of :meth:`gather` and :meth:`reduce`.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the array with the result.
    """
    return start_call(self, describe_reduce_scatter(self, a, into, counts, op, dtype))  # type: ignore[no-any-return]
