# SPDX-License-Identifier: BSD-3-Clause
"""Options as enumerations; every function that takes one also takes its name as text."""

import enum
from collections.abc import Iterable
from typing import Any, TypeVar

from ofipy._base.arrays import is_numpy_integer, np
from ofipy._base.binding import lib
from ofipy._base.errors import InvalidArgument

__all__ = [
    "COMPLETE_FLAGS",
    "Access",
    "Cap",
    "Completed",
    "Encryption",
    "EndpointType",
    "Flag",
    "Op",
    "Order",
    "PeerProof",
    "Progress",
    "Threading",
    "complete_flags",
    "parse_enum",
    "parse_flags",
]


class Flags(enum.Flag):
    """Flags that go with numpy's integers, as the fields of records are: ``row["flags"] & Completed.RECV``.

    The result is numpy's, of the dtype of the other operand, in either order. Left to itself numpy takes a flag for a
    signed integer, which has no operation in common with an unsigned one.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        others = [np.asarray(each) for each in inputs if not isinstance(each, Flags)]
        kind = np.result_type(*others) if others else np.dtype(np.uint64)
        number = kind.type if np.issubdtype(kind, np.integer) else int
        plain = (number(each.value) if isinstance(each, Flags) else each for each in inputs)
        return getattr(ufunc, method)(*plain, **options)

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls(int(value)) if is_numpy_integer(value) else super()._missing_(value)


class Op(enum.IntEnum):
    """What an operation record asks for."""

    SEND = lib.OFP_SEND
    RECV = lib.OFP_RECV
    TSEND = lib.OFP_TSEND
    TRECV = lib.OFP_TRECV
    READ = lib.OFP_READ
    WRITE = lib.OFP_WRITE
    ATOMIC = lib.OFP_ATOMIC
    FETCH_ATOMIC = lib.OFP_FETCH_ATOMIC
    COMPARE_ATOMIC = lib.OFP_COMPARE_ATOMIC
    BARRIER = lib.OFP_BARRIER
    """The first of the collectives: their records' `peer` is :attr:`Group.number`, their `tag` the root's rank."""
    BROADCAST = lib.OFP_BROADCAST
    ALLTOALL = lib.OFP_ALLTOALL
    ALLREDUCE = lib.OFP_ALLREDUCE
    ALLGATHER = lib.OFP_ALLGATHER
    REDUCE_SCATTER = lib.OFP_REDUCE_SCATTER
    REDUCE = lib.OFP_REDUCE
    SCATTER = lib.OFP_SCATTER
    GATHER = lib.OFP_GATHER


class Flag(Flags, enum.IntFlag):
    """Flags of an operation record."""

    INJECT = lib.OFP_INJECT
    """The buffer is reusable when the post returns."""
    COMPLETION = lib.OFP_COMPLETION
    """Write a completion, on an endpoint with selective completion."""
    REMOTE_CQ_DATA = lib.OFP_REMOTE_CQ_DATA
    """Carry `data` to the target's completion."""
    MORE = lib.OFP_MORE
    """Another post follows at once."""
    FENCE = lib.OFP_FENCE
    """Start after earlier operations to this peer have finished."""
    TRANSMIT_COMPLETE = lib.OFP_TRANSMIT_COMPLETE
    DELIVERY_COMPLETE = lib.OFP_DELIVERY_COMPLETE
    MATCH_COMPLETE = lib.OFP_MATCH_COMPLETE
    PEEK = lib.OFP_PEEK
    """Look for a message that has arrived; receives nothing."""
    CLAIM = lib.OFP_CLAIM
    """With PEEK or HOLD: set the message aside; alone: receive the one set aside."""
    DISCARD = lib.OFP_DISCARD
    """With PEEK or CLAIM: drop the message."""
    HOLD = lib.OFP_HOLD
    """With CLAIM: stay posted until a message matches, then set it aside."""
    MULTI_RECV = lib.OFP_MULTI_RECV
    """Of a receive: the buffer takes message after message."""
    DEVICE_ATOMIC = lib.OFP_DEVICE_ATOMIC
    """Of an atomic: the device carries it out. Set by itself where the remote region is registered for that."""
    BOUND = lib.OFP_BOUND
    """Only in the incarnation of the peer that the record's `reserved` numbers: see :meth:`Endpoint.incarnation`."""


class Completed(Flags, enum.IntFlag):
    """Flags of a completion record: what has finished."""

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
    COLLECTIVE = lib.OFP_COMPLETED_COLLECTIVE


class Cap(Flags):
    """Capabilities of an endpoint (fi_getinfo(3), "caps")."""

    MSG = lib.OFP_CAP_MSG
    TAGGED = lib.OFP_CAP_TAGGED
    RMA = lib.OFP_CAP_RMA
    ATOMIC = lib.OFP_CAP_ATOMIC
    MULTICAST = lib.OFP_CAP_MULTICAST
    COLLECTIVE = lib.OFP_CAP_COLLECTIVE
    DIRECTED_RECV = lib.OFP_CAP_DIRECTED_RECV
    MULTI_RECV = lib.OFP_CAP_MULTI_RECV
    SOURCE = lib.OFP_CAP_SOURCE
    RMA_EVENT = lib.OFP_CAP_RMA_EVENT
    TRIGGER = lib.OFP_CAP_TRIGGER
    """Operations wait for counters: ``ep.post(records, after=(counter, n))``, :meth:`Domain.defer`."""
    FENCE = lib.OFP_CAP_FENCE
    LOCAL_COMM = lib.OFP_CAP_LOCAL_COMM
    REMOTE_COMM = lib.OFP_CAP_REMOTE_COMM
    HMEM = lib.OFP_CAP_HMEM
    SHARED_CONTEXT = lib.OFP_CAP_SHARED_CONTEXT
    ANY_INJECT = lib.OFP_CAP_ANY_INJECT
    """Messages beyond ``info.inject_size`` can be injected too, by copying."""
    DEVICE_ATOMIC = lib.OFP_CAP_DEVICE_ATOMIC
    """Atomics that the device carries out by itself, in memory registered with ``access="device_atomic"``."""


class Order(Flags):
    """Message ordering: SAS means that a send after a send does not pass it (fi_endpoint(3), "msg_order")."""

    RAR = lib.OFP_ORDER_RAR
    RAW = lib.OFP_ORDER_RAW
    RAS = lib.OFP_ORDER_RAS
    WAR = lib.OFP_ORDER_WAR
    WAW = lib.OFP_ORDER_WAW
    WAS = lib.OFP_ORDER_WAS
    SAR = lib.OFP_ORDER_SAR
    SAW = lib.OFP_ORDER_SAW
    SAS = lib.OFP_ORDER_SAS


class Access(Flags):
    """What a memory region may be used for (fi_mr(3))."""

    SEND = lib.OFP_ACCESS_SEND
    RECV = lib.OFP_ACCESS_RECV
    READ = lib.OFP_ACCESS_READ
    WRITE = lib.OFP_ACCESS_WRITE
    REMOTE_READ = lib.OFP_ACCESS_REMOTE_READ
    REMOTE_WRITE = lib.OFP_ACCESS_REMOTE_WRITE
    DEVICE_ATOMIC = lib.OFP_ACCESS_DEVICE_ATOMIC
    """Atomic operations of the peers' devices, and none that a process carries out."""
    LOCAL = lib.OFP_ACCESS_SEND | lib.OFP_ACCESS_RECV | lib.OFP_ACCESS_READ | lib.OFP_ACCESS_WRITE
    """Every use by this process."""


class PeerProof(enum.Enum):
    """What endpoints require of a peer before they connect to it, or accept it."""

    NONE = lib.OFP_PROOF_NONE
    """Nothing, even if a key is set."""
    KEY = lib.OFP_PROOF_KEY
    """A proof of the key in ``OFIPY_AUTH_KEY_FILE``, if one is set."""
    USER = lib.OFP_PROOF_USER
    """That its process runs as the same user on this host, as the kernel reports it."""


class Encryption(enum.Enum):
    """What ``OFIPY_ENCRYPTION=required`` means for endpoints."""

    NONE = lib.OFP_ENCRYPTION_NONE
    """They cannot encrypt, and do not open."""
    TLS = lib.OFP_ENCRYPTION_TLS
    """Every connection is encrypted by TLS 1.3."""
    HOST = lib.OFP_ENCRYPTION_HOST
    """Their bytes do not leave this host, and are not encrypted."""


class EndpointType(enum.Enum):
    """Kind of an endpoint: connected messages, reliable datagrams, datagrams."""

    MSG = lib.OFP_EP_MSG
    RDM = lib.OFP_EP_RDM
    DGRAM = lib.OFP_EP_DGRAM


class Threading(enum.Enum):
    """Who may call into a domain: any thread, or the one that it is bound to."""

    SAFE = lib.OFP_THREAD_SAFE
    COMPLETION = lib.OFP_THREAD_SAFE
    """libfabric's level below SAFE, which is as cheap here: another name for it."""
    DOMAIN = lib.OFP_THREAD_DOMAIN


class Progress(enum.Enum):
    """Who moves messages: reads and waits of the application, or a helper thread too."""

    MANUAL = lib.OFP_PROGRESS_MANUAL
    AUTO = lib.OFP_PROGRESS_AUTO


FlagT = TypeVar("FlagT", bound=enum.Flag)
EnumT = TypeVar("EnumT", bound=enum.Enum)


def parse_flags(kind: type[FlagT], value: FlagT | str | Iterable[FlagT | str] | None) -> FlagT:
    """Read flags from a flag, from names such as ``"tagged|rma"``, or from several of either.

    Raises
    ------
    InvalidArgument
        When a name is unknown; the message lists the known ones.
    """
    if isinstance(value, kind):
        return value
    result = kind(0)
    if value is None:
        return result
    if isinstance(value, str):
        for name in value.replace(",", "|").split("|"):
            if name.strip():
                result |= parse_enum(kind, name)
        return result
    if not isinstance(value, Iterable):
        raise InvalidArgument(
            f"{value!r} as {kind.__name__}; a {kind.__name__}, a name or several names are meant"
        )
    for each in value:
        result |= parse_flags(kind, each)
    return result


def parse_enum(kind: type[EnumT], value: EnumT | str) -> EnumT:
    """Read a member from its name, in either case."""
    if isinstance(value, kind):
        return value
    found = kind.__members__.get(value.strip().upper()) if isinstance(value, str) else None
    if found is None:
        known = ", ".join(name.lower() for name in kind.__members__)
        raise InvalidArgument(f"{value!r} as {kind.__name__}; known are {known}")
    return found


# Completion levels; None is "buffer reusable".
COMPLETE_FLAGS = {
    None: 0,
    "transmit": lib.OFP_TRANSMIT_COMPLETE,
    "delivery": lib.OFP_DELIVERY_COMPLETE,
    "match": lib.OFP_MATCH_COMPLETE,
}


def complete_flags(level: str | None) -> int:
    """Flag bits of a completion level: ``transmit``, ``delivery``, ``match``, None for "buffer reusable"."""
    try:
        return int(COMPLETE_FLAGS[level])
    except (KeyError, TypeError):
        raise InvalidArgument(f"complete={level!r}; known are transmit, delivery and match") from None
