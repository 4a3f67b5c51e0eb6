# SPDX-License-Identifier: BSD-3-Clause
"""The record of an operation on the memory of a peer: what reads, writes and atomic operations have in common."""

import errno as codes
from collections.abc import Sequence
from typing import Any

from ofipy._base.errors import InvalidArgument
from ofipy._discovery.av import own_peer
from ofipy._memory.buffers import LocalMemory, make_record
from ofipy._memory.remote import RemoteMemory, RemoteRegion, remote_memory
from ofipy._operations.initiator import Initiator

__all__ = ["Remote", "remote_record"]

Remote = RemoteRegion | Sequence[RemoteRegion]


def remote_record(
    initiator: Initiator,
    code: int,
    name: str,
    memory: LocalMemory,
    peer: int,
    remote: Remote,
    *,
    rights: int,
    **fields: Any,
) -> tuple[Any, RemoteMemory]:
    """Check both sides of an operation and make its record.

    Parameters
    ----------
    initiator : Initiator
        What the operation is started on.
    code, name : int, str
        The operation, for the record and for errors.
    memory : LocalMemory
        The local side.
    peer : Peer or int
        Whose memory.
    remote : RemoteRegion, or list of them
        The remote side, as many bytes as `memory`.
    rights : int
        What each piece of it must grant.
    **fields
        Further fields of the record, as of :func:`make_record`.

    Returns
    -------
    tuple of record and RemoteMemory
        The record points to segments of the second, which the caller keeps alive.
    """
    domain = initiator._domain
    number = own_peer(initiator._peers.vector, peer, name)
    far = remote_memory(
        remote,
        rights=rights,
        limit=domain.info.remote_segment_limit,
        operation=name,
        provider=domain.provider,
    )
    if memory.length != far.length:
        raise InvalidArgument(
            f"{memory.length} bytes here, {far.length} bytes at the peer",
            errno=codes.EINVAL,
            operation=name,
            remedy="cut the longer one: remote[begin:end]",
        )
    return make_record(code, memory, peer=number, remote=far, **fields), far
