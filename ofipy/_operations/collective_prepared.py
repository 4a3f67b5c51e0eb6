# SPDX-License-Identifier: BSD-3-Clause
"""Prepared collectives: each start of the request is the group's next collective."""

from __future__ import annotations

from typing import Any

from ofipy._base.atomic_types import AtomicOp
from ofipy._base.binding import lib
from ofipy._completion.request import PreparedRequest
from ofipy._operations.collective_calls import (
    describe_alltoall,
    describe_barrier,
    describe_broadcast,
    describe_gather,
    describe_gathered,
    describe_reduce_scatter,
    describe_scatter,
    describe_vector,
)
from ofipy._operations.collective_memory import Counts
from ofipy._operations.collective_start import Members, prepare_call

__all__ = [
    "prepare_allgather",
    "prepare_allreduce",
    "prepare_alltoall",
    "prepare_barrier",
    "prepare_broadcast",
    "prepare_exscan",
    "prepare_gather",
    "prepare_reduce",
    "prepare_reduce_scatter",
    "prepare_scan",
    "prepare_scatter",
]


def prepare_barrier(self: Members) -> PreparedRequest:
    """Prepare a :meth:`barrier`: each start of the request is the group's next collective."""
    return prepare_call(self, describe_barrier(self))


def prepare_broadcast(self: Members, a: Any, *, root: int = 0) -> PreparedRequest:
    """Prepare a :meth:`broadcast`."""
    return prepare_call(self, describe_broadcast(self, a, root))


def prepare_reduce(
    self: Members,
    a: Any,
    into: Any = None,
    *,
    op: str | AtomicOp = "sum",
    root: int = 0,
    dtype: Any = None,
) -> PreparedRequest:
    """Prepare a :meth:`reduce`."""
    call = describe_vector(self, "reduce", lib.OFP_COLLECTIVE_REDUCE, a, into, op, dtype, root)
    return prepare_call(self, call)


def prepare_allreduce(
    self: Members, a: Any, into: Any = None, *, op: str | AtomicOp = "sum", dtype: Any = None
) -> PreparedRequest:
    """Prepare an :meth:`allreduce`."""
    call = describe_vector(self, "allreduce", lib.OFP_COLLECTIVE_ALLREDUCE, a, into, op, dtype, None)
    return prepare_call(self, call)


def prepare_scan(
    self: Members, a: Any, into: Any = None, *, op: str | AtomicOp = "sum", dtype: Any = None
) -> PreparedRequest:
    """Prepare a :meth:`scan`."""
    return prepare_call(
        self, describe_vector(self, "scan", lib.OFP_COLLECTIVE_SCAN, a, into, op, dtype, None)
    )


def prepare_exscan(
    self: Members, a: Any, into: Any = None, *, op: str | AtomicOp = "sum", dtype: Any = None
) -> PreparedRequest:
    """Prepare an :meth:`exscan`."""
    return prepare_call(
        self, describe_vector(self, "exscan", lib.OFP_COLLECTIVE_EXSCAN, a, into, op, dtype, None)
    )


def prepare_gather(
    self: Members, a: Any, into: Any = None, *, counts: Counts | None = None, root: int = 0
) -> PreparedRequest:
    """Prepare a :meth:`gather`."""
    return prepare_call(self, describe_gather(self, a, into, counts, root))


def prepare_scatter(
    self: Members, a: Any, into: Any = None, *, counts: Counts | None = None, root: int = 0
) -> PreparedRequest:
    """Prepare a :meth:`scatter`."""
    return prepare_call(self, describe_scatter(self, a, into, counts, root))


def prepare_allgather(
    self: Members, a: Any, into: Any = None, *, counts: Counts | None = None
) -> PreparedRequest:
    """Prepare an :meth:`allgather`."""
    return prepare_call(
        self, describe_gathered(self, "allgather", lib.OFP_COLLECTIVE_ALLGATHER, a, into, counts)
    )


def prepare_alltoall(
    self: Members,
    a: Any,
    into: Any = None,
    *,
    counts: Counts | None = None,
    into_counts: Counts | None = None,
) -> PreparedRequest:
    """Prepare an :meth:`alltoall`."""
    return prepare_call(self, describe_alltoall(self, a, into, counts, into_counts))


def prepare_reduce_scatter(
    self: Members,
    a: Any,
    into: Any = None,
    *,
    counts: Counts | None = None,
    op: str | AtomicOp = "sum",
    dtype: Any = None,
) -> PreparedRequest:
    """Prepare a :meth:`reduce_scatter`."""
    return prepare_call(self, describe_reduce_scatter(self, a, into, counts, op, dtype))
