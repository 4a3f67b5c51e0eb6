# SPDX-License-Identifier: BSD-3-Clause
"""ofipy in a crowd: records, a window with one post."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

import ofipy
from fabtests.compare.crowd import WINDOW, WORD, Crowd, Words
from ofipy.pingpong.side import Side

__all__ = ["OfipyCrowd"]

TAG = 7
ANY_SOURCE = 0xFFFFFFFF


class OfipyCrowd(Crowd):
    """One endpoint a side.

    Parameters
    ----------
    first : bool
        Whether this side receives.
    provider : str
        Provider by name.
    """

    def __init__(self, first: bool, *, provider: str) -> None:
        super().__init__(first)
        self._side = Side(first, provider=provider)
        endpoint = self._side.endpoint
        self._words = np.zeros(WINDOW, WORD)
        self._region = endpoint.register(self._words)
        self._completions = endpoint.cq.batch(WINDOW)
        self._records = endpoint.domain.operations(WINDOW)

    def version(self) -> str:
        """Of ofipy."""
        return version("ofipy")

    def offer(self) -> str:
        """The endpoint's address."""
        return self._side.offer()

    def meet(self, other: Any) -> None:
        """Senders enter the receiver's address."""
        records = self._records
        if self.first:
            records["op"], records["peer"] = ofipy.Op.TRECV, ANY_SOURCE
        else:
            self._side.meet(other)
            records["op"], records["peer"] = ofipy.Op.TSEND, self._side.peer
        records["tag"], records["region"] = TAG, self._region.id
        records["offset"] = self._region.offset + np.arange(WINDOW) * self._words.itemsize
        records["length"] = self._words.itemsize

    def _post(self) -> None:
        endpoint, begun = self._side.endpoint, 0
        while begun < WINDOW:
            try:
                begun += endpoint.post(self._records[begun:] if begun else self._records)
            except ofipy.Again:
                endpoint.domain.progress()

    def _finish(self) -> None:
        left = WINDOW
        while left:
            rows = self._completions.wait(min=left)
            for failed in rows[rows["error"] != 0]:
                raise self._side.endpoint.cq.exception(failed) or AssertionError(failed)
            left -= len(rows)

    def send(self, words: Words) -> None:
        """Injected: their buffer is free at once, and no completion tells of it."""
        self._records["flags"] = ofipy.Flag.INJECT.value
        self._words[:] = words
        self._post()

    def send_last(self, words: Words) -> None:
        """With completions."""
        self._records["flags"] = 0
        self._words[:] = words
        self._post()
        self._finish()

    def receive(self) -> Iterator[Words]:
        """A window with one post and one wait."""
        while True:
            self._post()
            self._finish()
            yield self._words

    def close(self) -> None:
        """Close the endpoint."""
        self._region.close()
        self._side.close()
