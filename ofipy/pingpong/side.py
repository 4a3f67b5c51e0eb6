# SPDX-License-Identifier: BSD-3-Clause
"""One end of a measurement: an endpoint, and the peer it has met."""

from types import TracebackType
from typing import Literal, Self

import ofipy
from ofipy._base.versions import Versions
from ofipy.pingpong.plan import NAME, VERSIONS, PingPongPlan

__all__ = ["DEFAULT_PORT", "Side"]

DEFAULT_PORT = "9228"  # libfabric's programs use the same

TAG_HELLO = 1
TAG_SYNC = 2
MARK = (
    b"s"  # this side has come to the same point; another byte: the version of the plan that this side speaks
)


class Side:
    """Open an endpoint that will talk to one peer.

    Parameters
    ----------
    first : bool
        Whether this side sends first: the client of a benchmark.
    provider : str, optional
        Provider by name; None: as configured.
    service : str, optional
        Port or name to be met at; None: any address.
    node : str, optional
        Address of the interface to use.
    progress : str
        As of :func:`ofipy.open`.

    Raises
    ------
    ofipy.FabricError
        When no endpoint can be opened.
    """

    def __init__(
        self,
        first: bool,
        *,
        provider: str | None = None,
        service: str | None = None,
        node: str | None = None,
        progress: Literal["manual", "auto"] = "auto",
    ) -> None:
        self.first = first
        self.endpoint = ofipy.open(provider=provider, service=service, node=node, progress=progress)
        self._peer: ofipy.Peer | None = None

    @property
    def peer(self) -> ofipy.Peer:
        """The other side."""
        assert self._peer is not None, "the sides have not met"
        return self._peer

    @property
    def provider(self) -> str:
        """Name of the provider that was opened."""
        return self.endpoint.provider

    def offer(self) -> str:
        """The address to hand to the other side."""
        return str(self.endpoint.address)

    def meet(self, address: str) -> None:
        """Take the other side's address; the first message goes out with the first transfer."""
        self.enter(address)

    def enter(self, address: str | bytes) -> None:
        """The same of an address in any form."""
        self._peer = self.endpoint.insert(address)

    def propose(self, plan: PingPongPlan) -> None:
        """Client, having met the server's address: send it the plan."""
        self.endpoint.tsend(plan.encode(), self.peer, tag=TAG_HELLO).wait()

    def answer(self) -> PingPongPlan:
        """Server: wait for a client and take its plan."""
        message = self.endpoint.trecv(tag=TAG_HELLO).wait()
        self._peer = message.source
        try:
            return PingPongPlan.decode(bytes(message.data))
        except ofipy.IncompatiblePeer:
            # The client waits at its first point, and reports the same.
            self.endpoint.tsend(bytes([VERSIONS.newest]), self.peer, tag=TAG_SYNC, complete="delivery").wait()
            raise

    def sync(self) -> None:
        """Return when the other side has come to the same point.

        Raises
        ------
        IncompatiblePeer
            When it speaks another version of the plan: then it sends the version instead.
        """
        arrived = bytearray(1)
        receive = self.endpoint.trecv_into(arrived, self.peer, tag=TAG_SYNC)
        self.endpoint.tsend(MARK, self.peer, tag=TAG_SYNC).wait()
        receive.wait()
        if arrived != MARK:
            raise VERSIONS.incompatible(Versions(arrived[0]), NAME)

    def close(self) -> None:
        """Close the endpoint and all that belongs to it."""
        self.endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
