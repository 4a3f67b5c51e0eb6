# SPDX-License-Identifier: BSD-3-Clause
"""Groups of endpoints (MPI: communicators), which have collectives as methods."""

from __future__ import annotations

import errno as codes
import hashlib
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from ofipy._base.binding import check, failure, ffi, lib
from ofipy._base.errors import Closed, CollectiveMismatch, FabricError, GroupBroken, InvalidArgument, PeerLost
from ofipy._base.lifetime import Handle, Opening, Resource
from ofipy._base.limits import whole_number
from ofipy._discovery.address import host_id
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.group_errors import broken_group, describe_mismatch, refused_group
from ofipy._operations import agreements, collectives
from ofipy._operations import collective_objects as of_objects
from ofipy._operations import collective_prepared as prepared
from ofipy._operations.agreements import AgreementRequest
from ofipy._operations.collective_calls import block_of
from ofipy._operations.collective_memory import Buffer
from ofipy._operations.collective_start import Call, CollectiveRequest, start_call
from ofipy._requests import Place

__all__ = ["Group", "join_group"]

_ROW = struct.Struct("<qqIIQ")  # color, key, number, whether it takes part, check of what all know
_MEMBER = struct.Struct("<IQ")  # number, host
_KEY_MAX = 2**63 - 1
_ANY = int(lib.OFP_GROUP_ANY)


@collectives.begin_in_c
class Group(Resource):
    """An ordered set of endpoints, one of each member, and this process's place in it.

    Made by :meth:`Job.group`, and from another group by :meth:`split`, :meth:`dup` and :meth:`subgroup`. All members
    start the same collectives in the same order; a group's messages never meet those of other groups, or the program's
    own. Threads that share a group agree on an order themselves, or use a :meth:`dup` each.

    A collective returns a request: wait for it, await it, or start several and wait for all. At most 64 of a group run
    at a time. It goes on without the program's help, as other operations do.
    """

    __slots__ = (
        "_address",
        "_check",
        "_endpoint",
        "_hosts",
        "_number",
        "_owns_endpoint",
        "_peers",
        "_place",
        "_rank",
    )

    _warns = False  # its endpoint does

    barrier = collectives.barrier
    broadcast = collectives.broadcast
    reduce = collectives.reduce
    allreduce = collectives.allreduce
    gather = collectives.gather
    scatter = collectives.scatter
    allgather = collectives.allgather
    alltoall = collectives.alltoall
    reduce_scatter = collectives.reduce_scatter
    scan = collectives.scan
    exscan = collectives.exscan
    agree = agreements.agree
    prepare_barrier = prepared.prepare_barrier
    prepare_broadcast = prepared.prepare_broadcast
    prepare_reduce = prepared.prepare_reduce
    prepare_allreduce = prepared.prepare_allreduce
    prepare_gather = prepared.prepare_gather
    prepare_scatter = prepared.prepare_scatter
    prepare_allgather = prepared.prepare_allgather
    prepare_alltoall = prepared.prepare_alltoall
    prepare_reduce_scatter = prepared.prepare_reduce_scatter
    prepare_scan = prepared.prepare_scan
    prepare_exscan = prepared.prepare_exscan
    broadcast_obj = of_objects.broadcast_obj
    reduce_obj = of_objects.reduce_obj
    allreduce_obj = of_objects.allreduce_obj
    gather_obj = of_objects.gather_obj
    scatter_obj = of_objects.scatter_obj
    allgather_obj = of_objects.allgather_obj
    alltoall_obj = of_objects.alltoall_obj
    scan_obj = of_objects.scan_obj
    exscan_obj = of_objects.exscan_obj

    def __init__(
        self, endpoint: Endpoint[Any], wanted: int | None = None, *, owns_endpoint: bool = False
    ) -> None:
        self._endpoint = endpoint
        self._owns_endpoint = owns_endpoint
        self._rank = 0
        # For the methods that begin in C, once the members are known.
        self._place: Place | None = None
        # What members of this group have alike, and members of another one over the same endpoints do not.
        self._check = 0
        self._peers: tuple[Peer, ...] = ()
        self._hosts: tuple[int, ...] = ()
        result, number = ffi.new("struct ofp_group **"), ffi.new("uint32_t *")
        with Opening(lambda: result[0], lib.ofp_group_close, lib.ofp_group_free) as opening:
            opened = lib.ofp_group_open(
                endpoint._pointer("group"), _ANY if wanted is None else wanted, number, result
            )
            if opened in (-codes.EOPNOTSUPP, -codes.EBUSY):
                raise refused_group(opened, endpoint)
            check(opened, operation="group", provider=endpoint.provider)
            pointer = opening.hold()
            # For C, which refuses what is closed; the memory stays as long as this object.
            self._address = int(ffi.cast("uintptr_t", pointer))
            provider = endpoint.provider

            def close(pointer: Any) -> None:
                check(lib.ofp_group_close(pointer), operation="close a group", provider=provider)

            self._own(Handle(pointer, close, (endpoint._core,), "group", opening=opening))
        self._number = int(number[0])

    def _join(self, rank: int, peers: Sequence[Peer], numbers: Sequence[int], hosts: Sequence[int]) -> None:
        """Name the members; a second call does nothing. `hosts` are numbers by rank, equal for the same host."""
        self._hosts = tuple(hosts)
        joined = lib.ofp_group_join(
            self._pointer("group"),
            len(peers),
            rank,
            [int(peer) for peer in peers],
            list(numbers),
            lib.OFP_GROUP_ONE_HOST if len(set(hosts)) == 1 else 0,
        )
        if joined == -codes.EALREADY:
            return
        check(joined, operation="group", provider=self._endpoint.provider)
        self._rank, self._peers = rank, tuple(peers)
        endpoint = self._endpoint
        self._place = Place(CollectiveRequest, endpoint, endpoint._poster, self._address, rank, len(peers))

    @property
    def rank(self) -> int:
        """Number of this member, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self._peers)

    @property
    def number(self) -> int:
        """Number of the group at its endpoint: `peer` of an operation record that is one of its collectives."""
        return self._number

    @property
    def peers(self) -> list[Peer]:
        """The members' endpoints, by rank: for messages between two of them."""
        return list(self._peers)

    @property
    def endpoint(self) -> Endpoint[Any]:
        """The endpoint of this member."""
        return self._endpoint

    # other groups

    def split(self, color: int | Literal["host"] | None, key: int = 0) -> CollectiveRequest[Group | None]:
        """Make a group of the members that name the same color; a call of all members.

        Parameters
        ----------
        color : int, "host" or None
            A number from 0; ``"host"``: the members of one host are of one group; None: be in no new group.
        key : int
            The new ranks are in the order of keys, then of ranks here.

        Returns
        -------
        CollectiveRequest
            Its ``wait()`` returns the new group, or None.
        """
        if color == "host":
            color = _host_color()
        elif color is not None:
            color = whole_number("color", color, 0, _KEY_MAX, operation="split")
        key = whole_number("key", key, -_KEY_MAX, _KEY_MAX, operation="split")
        return _derive(self, "split", color, key)

    def dup(self) -> CollectiveRequest[Group]:
        """Make another group of the same members; a call of all members.

        Returns
        -------
        CollectiveRequest
            Its ``wait()`` returns the new group.
        """
        return cast("CollectiveRequest[Group]", _derive(self, "dup", 0, 0))

    def subgroup(self, ranks: Sequence[int], *, tag: int = 0) -> CollectiveRequest[Group]:
        """Make a group of some members; a call of these alone, with the same ranks in the same order.

        Parameters
        ----------
        ranks : sequence of int
            Ranks here, the own one among them; their order is that of the new ranks.
        tag : int
            Tells calls apart that run at the same time, as of several threads.

        Returns
        -------
        CollectiveRequest
            Its ``wait()`` returns the new group.
        """
        name = "subgroup"
        chosen = [whole_number("rank", rank, 0, self.size - 1, operation=name) for rank in ranks]
        tag = whole_number("tag", tag, 0, _KEY_MAX, operation=name)
        if self.rank not in chosen or len(set(chosen)) != len(chosen):
            raise InvalidArgument(
                f"ranks={chosen}", operation=name, remedy=f"each rank once is meant, {self.rank} among them"
            )
        # All members compute this alike, whatever else they have done.
        known = _fingerprint(self._check, chosen, tag)
        wanted = lib.OFP_GROUP_WANTED + known % (lib.OFP_GROUP_LIMIT - lib.OFP_GROUP_WANTED)
        meeting = Group(self._endpoint, wanted)
        try:
            peers = [self._peers[rank] for rank in chosen]
            hosts = [self._hosts[rank] for rank in chosen]
            meeting._join(chosen.index(self.rank), peers, [wanted] * len(peers), hosts)
            request = _derive(meeting, name, 0, 0, known)
        except BaseException:
            meeting.close()
            raise
        request._meeting = meeting
        return cast("CollectiveRequest[Group]", request)

    # after a failure

    def abort(self, reason: str = "") -> None:
        """Break the group at all members: what runs in it ends with :class:`GroupBroken`, and nothing starts.

        Does nothing if the group is broken already. :meth:`agree` and :meth:`shrink` may follow.

        Parameters
        ----------
        reason : str
            ``abort_reason`` of the error, at all members; up to 199 bytes of UTF-8, the rest is cut.

        Raises
        ------
        Closed
            When the group is closed.
        """
        text = reason.encode()[: lib.OFP_GROUP_REASON_MAX - 1].decode(errors="ignore")
        check(
            lib.ofp_group_abort(self._pointer("abort"), text.encode()),
            operation="abort",
            provider=self._endpoint.provider,
        )

    def shrink(self) -> CollectiveRequest[Group]:
        """Make a group of the members that live, in the order of their ranks; a call of all of these.

        It works in any group, also in one that broke by a loss, a mismatch or :meth:`abort`. If this group owns its
        endpoint, as one of :meth:`Job.group` may, the new group owns it from then on.

        Returns
        -------
        CollectiveRequest
            Its ``wait()`` returns the new group, which has the same members everywhere.

        Raises
        ------
        Busy, GroupBroken, CollectiveMismatch
            As of :meth:`agree`.

        Notes
        -----
        As MPIX_Comm_shrink of ULFM.
        """
        made = Group(self._endpoint)
        try:
            request: _ShrinkRequest = agreements.start_agreement(
                self, "shrink", _ShrinkRequest, True, made._number
            )
        except BaseException:
            made.close()
            raise
        request._value = made
        return request

    # the end

    def _refusal(self, code: int, operation: str, provider_error: int = 0) -> FabricError:
        """The error that a collective of this group ends with, or is refused with."""
        provider = self._endpoint.provider
        if code == codes.ECANCELED:
            return Closed("the group is closed", operation=operation, provider=provider)
        state = ffi.new("struct ofp_group_state *")
        if not self.closed:
            lib.ofp_group_query(self._pointer(operation), state)
        if code == lib.OFP_EMISMATCH:
            return failure(
                code, text=describe_mismatch(state, self._rank), operation=operation, provider=provider
            )
        error = failure(code, operation=operation, provider=provider, provider_error=provider_error)
        if state.cause:
            return broken_group(state, self._rank, operation, provider)
        ranks = tuple(state.lost[0 : state.lost_count])
        if not ranks and not isinstance(error, PeerLost):
            return error
        gone = f"rank {', '.join(map(str, ranks))} is gone: " if ranks else ""
        broken = GroupBroken(
            f"the group is broken: {gone}{error.message}",
            errno=error.errno,
            operation=operation,
            provider=provider,
            remedy="make a group of those that live: shrink()",
        )
        broken.reason = getattr(error, "reason", None)
        broken.ranks = ranks
        return broken

    def close(self, *, linger: float | None = None) -> None:
        """Close it: collectives that run end as :class:`~ofipy.Closed`, here; a second call does nothing.

        An endpoint that :meth:`Job.group` has opened is closed with it.

        Parameters
        ----------
        linger : float, optional
            As of :meth:`Endpoint.close`.
        """
        super().close(linger=linger)
        if self._owns_endpoint:
            self._endpoint.close(linger=linger)

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<Group rank {self.rank} of {self.size}{state}>"


class _GroupRequest(CollectiveRequest["Group | None"]):
    """Makes a group of those whose rows have the own color."""

    __slots__ = ("_blocks", "_meeting", "_row")

    _meeting: Group
    _row: tuple[int, ...]
    _blocks: bytearray

    def _finished_value(self) -> Group | None:
        group: Group = self._value
        color, _, _, takes_part, known = self._row
        rows = list(_ROW.iter_unpack(self._blocks))
        if any(row[4] != known for row in rows):
            raise CollectiveMismatch(
                "the members do not name the same ranks and tag", operation=self._name, remedy="they have to"
            )
        if takes_part and not group.size:
            old = cast("Group", self._group)
            members = sorted((row[1], rank) for rank, row in enumerate(rows) if row[3] and row[0] == color)
            ranks = [rank for _, rank in members]
            group._check = _fingerprint(known, color, [row[2] for row in rows])
            group._join(
                ranks.index(old.rank),
                [old._peers[rank] for rank in ranks],
                [rows[rank][2] for rank in ranks],
                [old._hosts[rank] for rank in ranks],
            )
        meeting: Group | None = getattr(self, "_meeting", None)
        if meeting is not None:
            meeting.close()
        if not takes_part:
            group.close()
            return None
        return group


class _ShrinkRequest(AgreementRequest["Group"]):
    """Makes a group of the members that live."""

    __slots__ = ()

    def _finished_value(self) -> Group:
        self._check_calls()
        made: Group = self._value
        if not made.size:
            old = cast("Group", self._group)
            dead = self._dead()
            ranks = [rank for rank in range(old.size) if rank not in dead]
            numbers = [self._result_values[rank] for rank in ranks]
            made._check = _fingerprint(old._check, numbers)
            made._join(
                ranks.index(old.rank),
                [old._peers[rank] for rank in ranks],
                numbers,
                [old._hosts[rank] for rank in ranks],
            )
            made._owns_endpoint, old._owns_endpoint = old._owns_endpoint, False
        return made


def _derive(group: Group, name: str, color: int | None, key: int, known: int = 0) -> _GroupRequest:
    """Exchange rows over a group, from which a new one is made."""
    made = Group(group.endpoint)
    row = (color or 0, key, made._number, int(color is not None), known)
    rows = bytearray(_ROW.size * group.size)
    own = _ROW.size * group.rank
    rows[own : own + _ROW.size] = _ROW.pack(*row)
    buffer = Buffer(rows, group.endpoint.domain, True, name)
    try:
        call = Call(
            name,
            lib.OFP_COLLECTIVE_ALLGATHER,
            made,
            count=_ROW.size,
            source=block_of(buffer, own, _ROW.size),
            target=buffer.memory,
        )
        request: _GroupRequest = start_call(group, call, _GroupRequest)
    except BaseException:
        made.close()
        raise
    request._row, request._blocks = row, rows
    return request


def _fingerprint(*values: Any) -> int:
    """A number of 64 bits that all members compute alike."""
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:8])


def _host_color() -> int:
    """What the members of one host have alike: its id, or its name where it has none."""
    number = host_id()
    known = number if any(number) else socket.gethostname().encode()
    return int.from_bytes(hashlib.sha256(known).digest()[:7])


def join_group(
    endpoint: Endpoint[Any],
    rank: int,
    peers: Sequence[Peer],
    exchange: Callable[[bytes], Sequence[bytes]],
    *,
    owns_endpoint: bool = False,
) -> Group:
    """Make a group of the endpoints that `peers` lists, by way of an exchange that they have already.

    Parameters
    ----------
    endpoint : Endpoint
        This member's.
    rank : int
        Of it, in `peers`.
    peers : sequence of Peer
        All members, in their order.
    exchange : callable
        Gives everybody some bytes, and returns those of all, by rank.
    owns_endpoint : bool
        The group closes it.
    """
    group = Group(endpoint, owns_endpoint=owns_endpoint)
    try:
        own = _MEMBER.pack(group._number, _host_color())
        numbers, hosts = zip(*(_MEMBER.unpack(block) for block in exchange(own)), strict=True)
        group._check = _fingerprint(list(numbers))
        group._join(rank, peers, numbers, hosts)
    except BaseException:
        group.close()
        raise
    return group
