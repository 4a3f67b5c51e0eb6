# SPDX-License-Identifier: BSD-3-Clause
"""Waiting until writes and atomics are in the memory of the peers (MPI_Win_flush)."""

from __future__ import annotations

from typing import Any

from ofipy._base.binding import failure, lib
from ofipy._base.limits import UINT32_MAX, whole_number
from ofipy._completion.request import Request
from ofipy._discovery.av import PEER_ANY, own_peer
from ofipy._operations.initiator import Initiator

__all__ = ["flush"]


class _Flush(Request):
    __slots__ = ()

    @property
    def _operation(self) -> str:
        return "flush"

    def _context(self) -> dict[str, Any]:
        # A flush of all peers names the one that it failed for.
        context = super()._context()
        if self._finished and self._error and context.get("peer") is None and self._endpoint is not None:
            context["peer"] = self._endpoint._peer_text(self._source)
        return context


def flush(self: Initiator, peer: int | None = None) -> Request:
    """Flush the writes, reads and atomics that were started before: ``ep.flush(peer).wait()``.

    Operations that are started later do not wait for the flush. It needs at most one round trip to each peer, and none
    where the transport knows by itself that the bytes have arrived.

    Parameters
    ----------
    peer : Peer or int, optional
        Whose memory. Default: that of all peers, and of the one peer of a connected endpoint (type ``msg``).

    Returns
    -------
    Request
        Finished when each of these operations has ended, and the bytes of those that succeeded are in the memory of
        their peers. What failed is said by its own request, not by the flush. Its ``wait()`` returns itself.
        Cancelling it ends the wait alone.

    Raises
    ------
    InvalidArgument, UnknownPeer, NotSupported, NotConnected, Closed
        When `peer` is wrong, or the endpoint has neither RMA nor atomics; nothing was started.

    From its ``wait()``: `PeerLost` when a peer was lost meanwhile, or before if it is named; the error of the transport
    when it could not confirm.
    """
    number = PEER_ANY
    if peer is not None:
        named = own_peer(self._peers.vector, peer, "flush")
        number = whole_number("peer", named, 0, UINT32_MAX, operation="flush")
    handle = lib.ofp_flush_request(self._pointer("flush"), number)
    if handle < 0:
        raise failure(
            handle,
            operation="flush",
            provider=self._domain.provider,
            peer=None if peer is None else self._peer_text(number),
        )
    return self._poster.adopt(self, _Flush, handle, number)  # type: ignore[no-any-return]
