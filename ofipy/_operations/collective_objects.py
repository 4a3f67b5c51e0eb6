# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of Python objects. Members do not know how large they are, so the core allocates what comes."""

from __future__ import annotations

import errno as codes
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ofipy._base.binding import ffi, lib
from ofipy._base.errors import AccessDenied, FabricError, IncompatiblePeer, InvalidArgument
from ofipy._memory.buffers import LocalMemory, local_memory
from ofipy._operations.collective_calls import root_rank
from ofipy._operations.collective_memory import element_counts
from ofipy._operations.collective_start import Call, CollectiveRequest, Members, start_call
from ofipy._operations.objects import NotAnObject, object_bytes, read_object

__all__ = [
    "allgather_obj",
    "allreduce_obj",
    "alltoall_obj",
    "broadcast_obj",
    "exscan_obj",
    "gather_obj",
    "reduce_obj",
    "scan_obj",
    "scatter_obj",
]

Fold = Callable[[Any, Any], Any]
_NOTHING = LocalMemory(0, 0, 0, None, 0, None)


class CollectiveObjectRequest(CollectiveRequest[Any]):
    """A collective of objects; :meth:`wait` unpacks what has come, and combines it where the collective reduces."""

    __slots__ = ("_made", "_read")

    _made: tuple[Any]
    _read: Callable[[list[Any]], Any]

    def _finished_value(self) -> Any:
        if not hasattr(self, "_made"):
            self._refuse_unproven()
            self._made = (self._read(_objects(self._value, self._name)),)
            lib.ofp_collective_result_free(self._value)
        return self._made[0]

    def _refuse_unproven(self) -> None:
        lack = self._endpoint._domain._proof.lack()
        if lack is not None and self._value.blocks:
            what, remedy = lack
            raise AccessDenied(
                f"{what}; the objects were dropped unread", operation=self._name, remedy=remedy
            )


def _objects(result: Any, name: str) -> list[Any]:
    """The objects of a result, one a block."""
    memory = ffi.buffer(result.memory, result.length) if result.length else b""
    objects = []
    for number in range(result.blocks):
        block = bytearray(memory[result.ends[number] : result.ends[number + 1]])
        try:
            objects.append(read_object(block))
        except NotAnObject as error:
            raise FabricError(f"block {number}: {error}", errno=codes.EBADMSG, operation=name) from None
        except IncompatiblePeer as error:
            raise IncompatiblePeer(
                f"block {number}: {error.message}", operation=name, remedy=error.remedy
            ) from None
    return objects


def _start(
    group: Members,
    name: str,
    kind: int,
    read: Callable[[list[Any]], Any],
    *,
    objects: Sequence[Any] = (),
    root: int = 0,
    blocks: bool = False,
) -> CollectiveRequest[Any]:
    """`objects`: what this member gives, one for each rank if `blocks`, else one or none."""
    pieces = [object_bytes(each) for each in objects]
    data = b"".join(pieces)
    memory = _NOTHING
    if data:
        memory = local_memory(data, domain=group.endpoint.domain, writable=False, operation=name)
    result = ffi.gc(ffi.new("struct ofp_collective_result *"), lib.ofp_collective_result_free)
    counts = element_counts([len(piece) for piece in pieces], group.size, 1, name) if blocks else None
    call = Call(
        name, kind, result, count=len(data), source=memory, root=root, source_counts=counts, sized=result
    )
    request: CollectiveObjectRequest = start_call(group, call, CollectiveObjectRequest)
    request._read = read
    return request


def _one(objects: list[Any]) -> Any:
    return objects[0]


def _per_rank(group: Members, objects: Sequence[Any] | None, name: str) -> Sequence[Any]:
    if objects is None or len(objects) != group.size:
        text = "None" if objects is None else f"{len(objects)} objects"
        raise InvalidArgument(f"{text}; one for each of {group.size} ranks is meant", operation=name)
    return objects


def broadcast_obj(self: Members, obj: Any = None, *, root: int = 0) -> CollectiveRequest[Any]:
    """Copy an object of the root to all members.

    .. warning::
        Who can send you a pickle can make your program do anything; :meth:`Endpoint.trecv_obj` says when it is taken.

    Parameters
    ----------
    obj : object
        At the root; ignored at others.
    root : int
        Its rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the object.
    """
    root = root_rank(self, root, "broadcast_obj")
    mine = self.rank == root
    read = (lambda objects: obj) if mine else _one
    return _start(
        self, "broadcast_obj", lib.OFP_COLLECTIVE_BROADCAST, read, objects=[obj] if mine else (), root=root
    )


def gather_obj(self: Members, obj: Any, *, root: int = 0) -> CollectiveRequest[Any]:
    """Collect an object of each member at the root.

    Parameters
    ----------
    obj : object
        The own one.
    root : int
        Its rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the list of objects, by rank; None at other ranks.
    """
    root = root_rank(self, root, "gather_obj")
    mine = self.rank == root
    return _start(
        self,
        "gather_obj",
        lib.OFP_COLLECTIVE_GATHER,
        (lambda objects: objects) if mine else (lambda objects: None),
        objects=[obj],
        root=root,
    )


def scatter_obj(
    self: Members, objects: Sequence[Any] | None = None, *, root: int = 0
) -> CollectiveRequest[Any]:
    """Give each member one of the root's objects.

    Parameters
    ----------
    objects : sequence
        At the root, one for each rank; ignored at others.
    root : int
        Its rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the own object.
    """
    name = "scatter_obj"
    root = root_rank(self, root, name)
    mine = self.rank == root
    given = _per_rank(self, objects, name) if mine else ()
    return _start(self, name, lib.OFP_COLLECTIVE_SCATTER, _one, objects=given, root=root, blocks=mine)


def allgather_obj(self: Members, obj: Any) -> CollectiveRequest[list[Any]]:
    """Collect an object of each member at every member.

    Parameters
    ----------
    obj : object
        The own one.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the list of objects, by rank.
    """
    return _start(self, "allgather_obj", lib.OFP_COLLECTIVE_ALLGATHER, list, objects=[obj])


def alltoall_obj(self: Members, objects: Sequence[Any]) -> CollectiveRequest[list[Any]]:
    """Give object r to rank r, for every r.

    Parameters
    ----------
    objects : sequence
        One for each rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the list of objects received, by rank.
    """
    name = "alltoall_obj"
    return _start(
        self,
        name,
        lib.OFP_COLLECTIVE_ALLTOALL,
        list,
        objects=_per_rank(self, objects, name),
        blocks=True,
    )


def reduce_obj(self: Members, obj: Any, *, op: Fold = operator.add, root: int = 0) -> CollectiveRequest[Any]:
    """Combine the objects of all members at the root, in rank order.

    Parameters
    ----------
    obj : object
        The own one.
    op : callable
        Of two objects, the one of the lower ranks first. The thread that waits runs it.
    root : int
        Its rank.

    Returns
    -------
    CollectiveRequest
        Its ``wait()`` returns the result, None at other ranks.
    """
    root = root_rank(self, root, "reduce_obj")
    mine = self.rank == root
    return _start(
        self,
        "reduce_obj",
        lib.OFP_COLLECTIVE_GATHER,
        functools.partial(functools.reduce, op) if mine else (lambda objects: None),
        objects=[obj],
        root=root,
    )


def allreduce_obj(self: Members, obj: Any, *, op: Fold = operator.add) -> CollectiveRequest[Any]:
    """Combine the objects of all members, at every member; parameters as of :meth:`reduce_obj`."""
    read = functools.partial(functools.reduce, op)
    return _start(self, "allreduce_obj", lib.OFP_COLLECTIVE_ALLGATHER, read, objects=[obj])


def scan_obj(self: Members, obj: Any, *, op: Fold = operator.add) -> CollectiveRequest[Any]:
    """Combine the objects of the ranks up to each one's own; parameters as of :meth:`reduce_obj`."""
    rank = self.rank
    return _start(
        self,
        "scan_obj",
        lib.OFP_COLLECTIVE_ALLGATHER,
        lambda objects: functools.reduce(op, objects[: rank + 1]),
        objects=[obj],
    )


def exscan_obj(self: Members, obj: Any, *, op: Fold = operator.add) -> CollectiveRequest[Any]:
    """Combine the objects of the ranks below each one's own; None at rank 0. Parameters as of :meth:`reduce_obj`."""
    rank = self.rank
    return _start(
        self,
        "exscan_obj",
        lib.OFP_COLLECTIVE_ALLGATHER,
        lambda objects: functools.reduce(op, objects[:rank]) if rank else None,
        objects=[obj],
    )
