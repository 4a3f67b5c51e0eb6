# SPDX-License-Identifier: BSD-3-Clause
"""Windows of tagged messages."""

import numpy as np

import ofipy
from fabtests.base.pingpong import TAG_PING
from fabtests.base.side import Side
from fabtests.compare.contender import Bytes, new_buffer
from fabtests.compare.ways.way import TAG_ACKNOWLEDGE, Way

__all__ = ["Array", "Domain"]


class Array(Way):
    """A request a message, out of ordinary arrays into ordinary arrays."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._byte = new_buffer(1)

    def stream(self, window: int) -> None:
        """One window."""
        endpoint, peer = self.side.endpoint, self.side.peer
        if self.first:
            acknowledged = endpoint.trecv_into(self._byte, peer, tag=TAG_ACKNOWLEDGE)
            send, outgoing = endpoint.tsend, self.outgoing
            ofipy.wait_all([send(outgoing, peer, tag=TAG_PING) for _ in range(window)])
            acknowledged.wait()
        else:
            receive, incoming = endpoint.trecv_into, self.incoming
            ofipy.wait_all([receive(incoming, peer, tag=TAG_PING) for _ in range(window)])
            endpoint.tsend(self._byte, peer, tag=TAG_ACKNOWLEDGE).wait()


class Domain(Array):
    """The same out of and into memory of ``domain.empty``."""

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """Written once, so that their pages are there."""
        domain = self.side.endpoint.domain
        buffers = domain.empty(self.size, np.uint8), domain.empty(self.size, np.uint8)
        for buffer in buffers:
            buffer.fill(1)
        return buffers
