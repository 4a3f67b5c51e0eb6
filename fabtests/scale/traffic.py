# SPDX-License-Identifier: BSD-3-Clause
"""Messages of many: windows to each target, the next one when the target has had the last.

A sender has one window under way to each target. The target answers it with an empty message, which is the sender's
leave for the next: nothing piles up, and the time from the first message of a window to its answer is what a message
waits for when all others send too. All posts are records, a window with one call, and completions come in batches.
"""

from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy as np

import ofipy
from fabtests.scale.flows import Flows
from ofipy.pingpong.plan import Span

__all__ = ["Traffic"]

DATA, ANSWER, LAST = range(3)
KIND = 32  # tags: what it is, above the number of the target at its sender or of the source at its target
EVERY_BIT = 2**64 - 1
ANY_SOURCE = 0xFFFFFFFF
POOL = 256  # receives that are posted
LIMIT = 60.0  # seconds without anything


class Traffic:
    """One process of them.

    Parameters
    ----------
    endpoint : Endpoint
        With a queue of its own.
    peers : sequence of Peer
        By rank.
    rank : int
        Of this process.
    targets : sequence of int
        Ranks that it sends to.
    sources : int
        How many send to it.
    size : int
        Bytes of a message.
    window : int
        Messages of a window.
    """

    def __init__(
        self,
        endpoint: ofipy.Endpoint,
        peers: Sequence[ofipy.Peer],
        rank: int,
        *,
        targets: Sequence[int],
        sources: int,
        size: int,
        window: int,
    ) -> None:
        self._endpoint = endpoint
        self._peers = peers
        self._rank = rank
        self._targets = targets
        self._sources = sources
        self._window = window
        self._injected = size <= endpoint.info.inject_size
        # What is sent, and behind it where all is received: nobody reads it.
        self._region = endpoint.register(np.ones(2 * size, np.uint8))
        self._size = size
        self._receives = endpoint.domain.operations(POOL)
        self._receives["op"], self._receives["peer"] = ofipy.Op.TRECV, ANY_SOURCE
        self._receives["ignore"], self._receives["length"] = EVERY_BIT, size
        self._receives["region"], self._receives["offset"] = self._region.id, self._region.offset + size
        self._windows = {target: self._records(DATA, target, window, size) for target in targets}
        self._notes: dict[tuple[int, int], Any] = {}
        self._waiting: deque[Any] = deque()  # records that the transport had no room for
        self._open = 0  # sends whose completion has not come
        self._completions = endpoint.cq.batch(POOL)
        self._post(self._receives)

    def _records(self, kind: int, target: int, count: int, size: int) -> Any:
        records = self._endpoint.domain.operations(count)
        records["op"], records["peer"] = ofipy.Op.TSEND, self._peers[target]
        records["tag"] = kind << KIND | self._rank
        records["region"], records["offset"] = self._region.id, self._region.offset
        records["length"] = size
        if size == 0 or self._injected:
            records["flags"] = ofipy.Flag.INJECT.value
        return records

    def run(self, span: Span) -> Flows:
        """Send and receive until everybody has ended; what was answered in time counts."""
        flows = Flows(np.zeros(len(self._peers), np.int64))
        begun = dict.fromkeys(self._targets, monotonic())
        owed = np.zeros(len(self._peers), np.int64)  # messages that came and are not answered
        sending, sources = len(self._targets), self._sources
        for target in self._targets:
            self._post(self._windows[target])
        while sending or sources or self._open or self._waiting:
            kinds, ranks = self._take()
            owed += np.bincount(ranks[kinds == DATA], minlength=len(owed))
            for source in np.flatnonzero(owed >= self._window):
                owed[source] -= self._window
                self._say(ANSWER, int(source))
            sources -= int(np.count_nonzero(kinds == LAST))
            for target in map(int, ranks[kinds == ANSWER]):
                now = monotonic()
                if span.counts(now):
                    flows.counts[target] += self._window
                    flows.turns.add(now - begun[target])
                if now < span.end:
                    begun[target] = now
                    self._post(self._windows[target])
                else:
                    self._say(LAST, target)
                    sending -= 1
        flows.counts = flows.counts[list(self._targets)]
        return flows

    def _take(self) -> tuple[Any, Any]:
        """What has come: of each message what it is, and the rank of its sender."""
        if self._waiting:
            self._post(self._waiting.popleft(), first=True)
        rows = self._completions.read() if self._waiting else self._completions.wait(LIMIT)
        for failed in rows[rows["error"] != 0]:
            raise self._endpoint.cq.exception(failed) or AssertionError(failed)
        came = (rows["flags"] & ofipy.Completed.RECV.value) != 0
        tags = rows["tag"][came]
        self._open -= len(rows) - len(tags)
        kinds, ranks = (tags >> KIND).astype(np.int64), (tags & 0xFFFFFFFF).astype(np.int64)
        self._post(self._receives[: len(tags)])
        return kinds, ranks

    def _say(self, kind: int, target: int) -> None:
        if (kind, target) not in self._notes:
            self._notes[kind, target] = self._records(kind, target, 1, 0)
        self._post(self._notes[kind, target])

    def _post(self, records: Any, *, first: bool = False) -> None:
        """Post in order; what there is no room for waits for :meth:`_take`."""
        posted = 0
        if first or not self._waiting:
            while posted < len(records):
                try:
                    posted += self._endpoint.post(records[posted:])
                except ofipy.Again:
                    break
        done = records[:posted]
        self._open += int(np.count_nonzero((done["op"] == ofipy.Op.TSEND) & (done["flags"] == 0)))
        if posted < len(records):
            (self._waiting.appendleft if first else self._waiting.append)(records[posted:])
