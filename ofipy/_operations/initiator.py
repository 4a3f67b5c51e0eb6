# SPDX-License-Identifier: BSD-3-Clause
"""What starts operations, and the three ways of doing so: with a request, as a prepared one, or posted.

The modules beside this one are the operations, as functions whose first argument is what starts them. Endpoint, alias
and receive context name the functions in the bodies of their classes, and so have them as methods.
"""

import errno as codes
from typing import Any, Protocol

from ofipy._base.binding import ffi, lib, nanoseconds
from ofipy._base.errors import InvalidArgument
from ofipy._completion.request import PreparedRequest, no_room, queue_is_full
from ofipy._discovery.av import ONLY_PEER, own_peer
from ofipy._discovery.peers import Peers
from ofipy._memory.allocation import MemoryDomain
from ofipy._operations.poster import Poster
from ofipy._operations.refused import refusal

__all__ = ["Initiator", "addressee", "post_record", "prepare", "start"]


class Initiator(Protocol):
    """An endpoint, an alias or a receive context."""

    _handle: Any
    """C's pointer, for the calls that are worth a look at it less; None while there is none."""
    _poster: Poster
    _peers: Peers

    @property
    def _domain(self) -> MemoryDomain: ...

    def _pointer(self, operation: str) -> Any:
        """C's pointer; raises when it is not open."""

    def _peer_text(self, peer: int) -> str | None:
        """A peer's address for messages, as far as it is known."""


def addressee(initiator: Initiator, peer: int | None, name: str) -> int:
    """To whom a send goes; None, or the number that stands for it: the one peer of a connected endpoint."""
    if peer is not None:
        peer = own_peer(initiator._peers.vector, peer, name)
        if peer != ONLY_PEER:
            return peer
    if initiator._peers.av is not None:
        raise InvalidArgument(
            f"{name} needs a Peer",
            operation=name,
            remedy='enter its address: peer = endpoint.insert("host:7471"); msg.source is one too',
        )
    return ONLY_PEER


def start(
    initiator: Initiator,
    kind: type[Any],
    what: int,
    record: Any,
    keep: Any,
    name: str,
    peer: int,
    timeout: float | None,
) -> Any:
    """Start the operation of a record; `keep` stays alive until it has finished."""
    # For its exception: it says whether it was closed, not enabled, or is the parent process's.
    initiator._pointer(name)
    started = initiator._poster.start(initiator, kind, what, ffi.buffer(record), keep, nanoseconds(timeout))
    if type(started) is not int:
        return started
    domain = initiator._domain
    if started == -codes.EAGAIN:
        raise queue_is_full(domain, name)
    text = initiator._peer_text(peer)
    if started == -codes.ETIMEDOUT and timeout is not None:
        raise no_room(timeout, operation=name, provider=domain.provider, peer=text)
    raise refusal(started, record, domain=domain, operation=name, peer=text)


def prepare(initiator: Initiator, record: Any, keep: Any, name: str, peer: int) -> PreparedRequest:
    """Prepare the operation of a record; `keep` stays alive as long as it may be started."""
    initiator._pointer(name)
    prepared = initiator._poster.prepare(initiator, PreparedRequest, ffi.buffer(record), keep)
    if type(prepared) is int:
        text = initiator._peer_text(peer)
        raise refusal(prepared, record, domain=initiator._domain, operation=name, peer=text)
    return prepared  # type: ignore[no-any-return]


def post_record(initiator: Initiator, record: Any, name: str, peer: int) -> None:
    """Post one record, to the raw tier."""
    result = lib.ofp_post(initiator._pointer(name), record, 1)
    if result < 0:
        text = initiator._peer_text(peer)
        raise refusal(result, record, domain=initiator._domain, operation=name, peer=text)
