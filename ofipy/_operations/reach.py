# SPDX-License-Identifier: BSD-3-Clause
"""Entering a peer, and waiting until it is there."""

from typing import Protocol

from ofipy._base.binding import drain_log, failure, nanoseconds
from ofipy._base.errors import TimedOut
from ofipy._completion.request import Request
from ofipy._discovery.address import Address
from ofipy._discovery.av import AddressVector, Peer
from ofipy._operations.initiator import Initiator

__all__ = ["insert"]

# Nanoseconds that the core asks longer than `insert` waits. `insert` gives up first then, unless its thread runs late.
_SLACK = 400_000_000


class _Reach(Request):
    __slots__ = ()

    @property
    def _operation(self) -> str:
        return "insert"


class _Entering(Initiator, Protocol):
    @property
    def av(self) -> AddressVector: ...


def insert(self: _Entering, address: Address | bytes | str, *, wait: float | None = None) -> Peer:
    """Enter a peer; as :meth:`AddressVector.insert`.

    Parameters
    ----------
    address : Address, bytes or str
        An address, its bytes, a URI, or ``host:port``.
    wait : float, optional
        Seconds: return when the peer has answered. Default: return at once; the first operation waits for it, for
        ``OFIPY_CONNECT_TIMEOUT``.

    Returns
    -------
    Peer
        Valid until removed.

    Raises
    ------
    TimedOut
        When nobody answered within `wait`. The peer stays entered; ``ep.av.find(address)`` is it.
    ConnectionRefused, AccessDenied
        When somebody answered, and refused.
    """
    patience = nanoseconds(wait, "does not wait")
    peer = self.av.insert(address)
    if wait is not None:
        _reach(self, peer, wait, patience + _SLACK)
    return peer


def _reach(self: Initiator, peer: Peer, wait: float, patience: int) -> None:
    self._pointer("insert")
    request = self._poster.reach(self, _Reach, int(peer), patience)
    if isinstance(request, int):
        raise failure(-request, operation="insert", provider=self._domain.provider)
    try:
        drain_log()
        request.wait(wait)
    except TimedOut:
        # Either of them gave up.
        raise TimedOut(
            f"nobody answered at its address within {wait:g} s",
            remedy="start the peer, check its address, or wait longer: insert(address, wait=seconds)",
            **request._context(),
        ) from None
    finally:
        # Who is interrupted, or has waited long enough, asks no more.
        request.cancel()
