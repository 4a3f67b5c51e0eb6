# SPDX-License-Identifier: BSD-3-Clause
"""ofipy as a group."""

from importlib.metadata import version
from typing import Any

import numpy as np

import ofipy
from fabtests.compare.team import ARRAY, DOMAIN, NATIVE, PREPARED, TAGGED, Array, Once, Team, kind_of
from ofipy import measure
from ofipy._base.binding import ffi, lib
from ofipy._objects.group import join_group

__all__ = ["OfipyTeam"]

_TAG = 1


class OfipyTeam(Team):
    """One member.

    Parameters
    ----------
    first : bool
        Whether it is rank 0.
    provider : str
        What the group runs over.
    """

    def __init__(self, first: bool, *, provider: str) -> None:
        super().__init__(first)
        self._endpoint = ofipy.open(provider=provider)
        self._group: ofipy.Group | None = None
        self._peers: list[ofipy.Peer] = []
        self._rank = 0

    def version(self) -> str:
        """Of ofipy."""
        return version("ofipy")

    def offer(self) -> bytes:
        """The endpoint's address."""
        return bytes(self._endpoint.address)

    def meet(self, offers: list[bytes], rank: int) -> None:
        """Make the group."""
        self.size, self._rank = len(offers), rank
        ep, self._peers = self._endpoint, [self._endpoint.insert(offer) for offer in offers]

        def exchange(block: bytes) -> list[bytes]:
            sent = [ep.tsend(block, peer, tag=_TAG) for peer in self._peers]
            got = [bytes(ep.trecv(peer, tag=_TAG).wait()) for peer in self._peers]
            ofipy.wait_all(sent)
            return got

        self._group = join_group(ep, rank, self._peers, exchange)

    def measure(self, mode: str, size: int, count: int) -> int:
        """As of every team; loops in C keep the time themselves."""
        if mode == TAGGED:
            return self._exchange_messages(size, count)
        if not mode.startswith(NATIVE):
            return super().measure(mode, size, count)
        request = self._prepare(mode, size)
        self.barrier()
        return round(measure.prepared(request, iterations=count) * 1e9)

    def _exchange_messages(self, size: int, count: int) -> int:
        """A message each way between the first two members, at the same time."""
        if self._rank > 1:
            self.barrier()
            return 0
        ep, other = self._endpoint, self._peers[1 if self.first else 0]
        receive = ep.prepare_trecv(self.array(size, TAGGED), other, tag=_TAG)
        send = ep.prepare_tsend(self.array(size, TAGGED), other, tag=_TAG)
        self.barrier()
        return round(measure.prepared(receive, send, iterations=count) * 1e9)

    def array(self, size: int, mode: str) -> Array:
        """Of the domain, where the mode says so."""
        if not mode.startswith(DOMAIN):
            return super().array(size, mode)
        array: Array = self._endpoint.empty(size // 4, np.float32)
        array[:] = 1
        return array

    def _arguments(self, mode: str, size: int) -> list[Array | None]:
        kind = kind_of(mode)
        buffers = [] if kind == "barrier" else list(self.buffers(kind, size, mode))
        return buffers[:1] if kind == "broadcast" else buffers

    def _prepare(self, mode: str, size: int) -> Any:
        return getattr(self._group, f"prepare_{kind_of(mode)}")(*self._arguments(mode, size))

    def prepare(self, mode: str, size: int) -> Once:
        """A call and its wait."""
        if mode == ARRAY:
            return self._prepare_array(size)
        if not mode.startswith(PREPARED):
            call, buffers = getattr(self._group, kind_of(mode)), self._arguments(mode, size)
            return lambda: call(*buffers).wait()
        request = self._prepare(mode, size)

        def once() -> None:
            request.start()
            request.wait()

        return once

    def _prepare_array(self, size: int) -> Once:
        """An array to the second member; the others do nothing."""
        ep, a = self._endpoint, self.array(size, ARRAY)
        if self.first:
            return lambda: ep.tsend(a, self._peers[1], tag=_TAG).wait()
        return lambda: ep.trecv_into(a, self._peers[0], tag=_TAG).wait()

    def kernel(self, out: Array, left: Array, right: Array) -> Once:
        """The core's own."""
        pointers = [ffi.from_buffer(each) for each in (out, left, right)]
        execute, count = lib.ofp_reduction_execute, out.size
        return lambda: execute(lib.OFP_ATOMIC_SUM, lib.OFP_FLOAT, *pointers, count)

    def barrier(self) -> None:
        """Of the group."""
        assert self._group is not None, "they have met"
        self._group.barrier().wait()

    def close(self) -> None:
        """Close the group with its endpoint."""
        self._endpoint.close()
