# SPDX-License-Identifier: BSD-3-Clause
"""Windows of tagged messages."""

from typing import Any

import numpy as np

import ofipy
from fabtests.compare.contender import Bytes, new_buffer
from fabtests.compare.views import VIEWS
from fabtests.compare.ways.way import TAG_ACKNOWLEDGE, Way
from ofipy.pingpong.loop import TAG_PING
from ofipy.pingpong.side import Side

__all__ = ["Array", "Batch", "Block", "CopiedBlock", "CopiedStrided", "Distinct", "Domain", "Strided"]

Records = np.ndarray[Any, np.dtype[np.void]]

ROWS = 64  # completions that one wait takes


class Array(Way):
    """A request a message, out of ordinary arrays into ordinary arrays."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._byte = new_buffer(1)

    def buffers(self, one: Bytes, window: int) -> list[Bytes]:
        """The buffer of each message."""
        return [one] * window

    def stream(self, window: int) -> None:
        """One window."""
        endpoint, peer = self.side.endpoint, self.side.peer
        if self.first:
            acknowledged = endpoint.trecv_into(self._byte, peer, tag=TAG_ACKNOWLEDGE)
            send = endpoint.tsend
            ofipy.wait_all([send(each, peer, tag=TAG_PING) for each in self.buffers(self.outgoing, window)])
            acknowledged.wait()
        else:
            receive = endpoint.trecv_into
            ofipy.wait_all(
                [receive(each, peer, tag=TAG_PING) for each in self.buffers(self.incoming, window)]
            )
            self.look()
            endpoint.tsend(self._byte, peer, tag=TAG_ACKNOWLEDGE).wait()


class Distinct(Array):
    """Every message of a window out of an array, and into an array, of its own: more than caches hold."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._many: list[Bytes] = []

    def buffers(self, one: Bytes, window: int) -> list[Bytes]:
        """As many as there are messages."""
        if len(self._many) != window:
            self._many = [new_buffer(one.size) for _ in range(window)]
        return self._many


class Domain(Array):
    """The same out of and into memory of ``domain.empty``."""

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """Written once, so that their pages are there."""
        domain = self.side.endpoint.domain
        buffers = domain.empty(self.size, np.uint8), domain.empty(self.size, np.uint8)
        for buffer in buffers:
            buffer.fill(1)
        return buffers


class Strided(Array):
    """A column or a block of an array into another one."""

    view = VIEWS["column"]

    def make_buffers(self) -> tuple[Bytes, Bytes]:
        """What is sent, and where it is received."""
        return self.view.make(self.size), self.view.make(self.size)


class Block(Strided):
    """A block."""

    view = VIEWS["block"]


class CopiedStrided(Strided):
    """The same as numpy does it: a contiguous copy is sent, and what came is copied to its place."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        self._landings: list[Bytes] = []

    def stream(self, window: int) -> None:
        """One window."""
        endpoint, peer = self.side.endpoint, self.side.peer
        if self.first:
            acknowledged = endpoint.trecv_into(self._byte, peer, tag=TAG_ACKNOWLEDGE)
            send = endpoint.tsend
            ofipy.wait_all(
                [send(np.ascontiguousarray(self.outgoing), peer, tag=TAG_PING) for _ in range(window)]
            )
            acknowledged.wait()
            return
        if len(self._landings) != window:
            self._landings = [np.empty(self.incoming.shape, self.incoming.dtype) for _ in range(window)]
        receives = [endpoint.trecv_into(each, peer, tag=TAG_PING) for each in self._landings]
        for receive, landing in zip(receives, self._landings, strict=True):
            receive.wait()
            self.incoming[...] = landing
        endpoint.tsend(self._byte, peer, tag=TAG_ACKNOWLEDGE).wait()


class CopiedBlock(CopiedStrided):
    """A block."""

    view = VIEWS["block"]


class Batch(Way):
    """Records, a window with one post; completions, a window with one wait."""

    def __init__(self, side: Side, size: int) -> None:
        super().__init__(side, size)
        endpoint = side.endpoint
        self._region = endpoint.register(self.outgoing if self.first else self.incoming)
        self._completions = endpoint.cq.batch(ROWS)
        self._there, self._back = (
            (ofipy.Op.TSEND, ofipy.Op.TRECV) if self.first else (ofipy.Op.TRECV, ofipy.Op.TSEND)
        )
        self._window = self._records(self._there, 1, size, TAG_PING)
        self._acknowledgement = self._records(self._back, 1, 0, TAG_ACKNOWLEDGE)

    def _records(self, op: ofipy.Op, count: int, length: int, tag: int) -> Records:
        records = self.side.endpoint.domain.operations(count)
        records["op"], records["peer"], records["tag"] = op, self.side.peer, tag
        records["region"], records["offset"] = self._region.id, self._region.offset
        records["length"] = length
        if op == ofipy.Op.TSEND and self._is_injected(length):
            records["flags"] = ofipy.Flag.INJECT.value
        return records

    def _is_injected(self, length: int) -> bool:
        """Whether it is sent without a completion, since its buffer is free when the post returns."""
        return length <= self.side.endpoint.info.inject_size

    def stream(self, window: int) -> None:
        """One window."""
        if self._window.size != window:
            self._window = self._records(self._there, window, self.size, TAG_PING)
        if self.first:
            self._post(self._acknowledgement)
            self._post(self._window)
            self._finish(1 if self._is_injected(self.size) else 1 + window)
        else:
            self._post(self._window)
            self._finish(window)
            self._post(self._acknowledgement)

    def _post(self, records: Records) -> None:
        endpoint, begun = self.side.endpoint, 0
        while begun < records.size:
            try:
                begun += endpoint.post(records[begun:] if begun else records)
            except ofipy.Again:
                endpoint.domain.progress()

    def _finish(self, count: int) -> None:
        """Take so many completions."""
        while count:
            rows = self._completions.wait(min=min(count, ROWS))
            for failed in rows[rows["error"] != 0]:
                raise self.side.endpoint.cq.exception(failed) or AssertionError(failed)
            count -= len(rows)

    def close(self) -> None:
        """Close the region."""
        self._region.close()
