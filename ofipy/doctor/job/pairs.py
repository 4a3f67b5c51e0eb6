# SPDX-License-Identifier: BSD-3-Clause
"""Measurements between all processes of a job, in rounds of pairs.

In round k, rank r measures with rank r XOR 2**k. So ⌈log₂ n⌉ rounds join every process with every other one by a chain
of pairs, and each process measures with several others, which is enough to say which of them is slow.

Every round has an absolute end. A process whose partner does not answer waits until that end at most, so nobody is
late for the next round because of somebody else's partner.
"""

import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

import ofipy
from ofipy._discovery.av import Peer
from ofipy.doctor.peer.wire import read_number, read_text
from ofipy.ping.tally import Tally

__all__ = ["ROUND_SECONDS", "Pair", "count_rounds", "find_partner", "measure_pair", "read_pair"]

ROUND_SECONDS = 6.0
_TRIPS = 50
_STREAM_SECONDS = 0.2
_CHUNK = 1 << 18
_WINDOW = 4
_TAG = 1 << 32  # and the round above
_READY, _TRIP, _STREAM = 1, 2, 3


@dataclass(slots=True)
class Pair:
    """What one process measured with its partner."""

    rank: int
    partner: int
    way: str = ""
    both_have_verbs: bool = False
    round_trip: float | None = None
    """Mean, seconds."""
    p99: float | None = None
    sent: float | None = None
    """Bytes per second to the partner."""
    received: float | None = None
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For rank 0."""
        return asdict(self)


def read_pair(said: dict[str, Any]) -> Pair:
    """What another process has measured."""
    rank, partner = (int(read_number(said, name) or 0) for name in ("rank", "partner"))
    return Pair(
        rank,
        partner,
        read_text(said, "way"),
        said.get("both_have_verbs") is True,
        read_number(said, "round_trip"),
        read_number(said, "p99"),
        read_number(said, "sent"),
        read_number(said, "received"),
        read_text(said, "error"),
    )


def count_rounds(size: int) -> int:
    """⌈log₂ n⌉ rounds join n processes."""
    return (size - 1).bit_length()


def find_partner(rank: int, number: int, size: int) -> int | None:
    """With whom a process measures in a round; None: with nobody."""
    partner = rank ^ (1 << number)
    return partner if partner < size else None


def measure_pair(
    endpoint: ofipy.Endpoint[ofipy.Domain], peers: list[Peer], rank: int, number: int, until: float
) -> Pair | None:
    """Measure with the partner of a round; None: there is none. What fails is part of the result.

    Parameters
    ----------
    endpoint : Endpoint
        Of this process.
    peers : list of Peer
        By rank.
    rank : int
        Of this process.
    number : int
        Of the round.
    until : float
        End of the round, of :func:`time.monotonic`.
    """
    partner = find_partner(rank, number, len(peers))
    if partner is None:
        return None
    pair = Pair(rank, partner)
    try:
        _Game(endpoint, peers[partner], number, until).play(pair, first=rank < partner)
        pair.way = endpoint.way(peers[partner])
    except ofipy.TimedOut:
        pair.error = "no answer in time"
    except ofipy.FabricError as error:
        pair.error = str(error.message)
    return pair


class _Game:
    """The messages of one pair in one round."""

    def __init__(self, endpoint: ofipy.Endpoint[ofipy.Domain], peer: Peer, number: int, until: float) -> None:
        self._endpoint = endpoint
        self._peer = peer
        self._tag = _TAG * (number + 1)
        self._until = until

    def play(self, pair: Pair, *, first: bool) -> None:
        """Meet, then round trips, then a stream each way."""
        self._exchange(_READY)
        tally = Tally()
        for _ in range(_TRIPS):
            begin = time.perf_counter()
            if first:
                self._send(b"trip", _TRIP)
                self._receive(_TRIP)
            else:
                self._receive(_TRIP)
                self._send(b"trip", _TRIP)
            tally.add("answered", time.perf_counter() - begin)
        pair.round_trip = sum(tally.seconds[1:]) / len(tally.seconds[1:])
        pair.p99 = (tally.summarize().p99_usec or 0) / 1e6
        for sends in (first, not first):
            if sends:
                pair.sent = self._stream_out()
            else:
                pair.received = self._stream_in()

    def _left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def _exchange(self, step: int) -> None:
        self._send(b"", step)
        self._receive(step)

    def _send(self, data: bytes, step: int) -> None:
        request = self._endpoint.tsend(data, self._peer, tag=self._tag + step)
        try:
            request.wait(timeout=self._left())
        except ofipy.TimedOut:
            request.cancel()
            raise

    def _receive(self, step: int, size: int = 16) -> int:
        request = self._endpoint.trecv_into(bytearray(size), self._peer, tag=self._tag + step)
        try:
            request.wait(timeout=self._left())
        except ofipy.TimedOut:
            request.cancel()
            raise
        return request.length

    def _stream_out(self) -> float:
        chunk = bytes(_CHUNK)
        posted: deque[ofipy.Request] = deque()
        begin, sent = time.perf_counter(), 0
        try:
            while time.perf_counter() - begin < _STREAM_SECONDS:
                posted.append(self._endpoint.tsend(chunk, self._peer, tag=self._tag + _STREAM))
                sent += _CHUNK
                if len(posted) == _WINDOW:
                    posted[0].wait(timeout=self._left())
                    posted.popleft()
            posted.append(self._endpoint.tsend(b"", self._peer, tag=self._tag + _STREAM))
            while posted:
                posted[0].wait(timeout=self._left())
                posted.popleft()
        finally:
            for each in posted:
                each.cancel()
        self._receive(_READY)  # everything has arrived
        return sent / (time.perf_counter() - begin)

    def _stream_in(self) -> float:
        begin, received = time.perf_counter(), 0
        while length := self._receive(_STREAM, _CHUNK):
            received += length
        seconds = time.perf_counter() - begin
        self._send(b"", _READY)
        return received / seconds
