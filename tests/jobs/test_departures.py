# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a job hear who has left, without a wire and with a clock of their own."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator

import pytest

from ofipy import IncompatiblePeer, InvalidArgument
from ofipy.jobs.departures import GRACE, PAUSE, Departures

LATENCY = 0.002
JITTER = 0.005
REFUSED = 1.0


class Simulation:
    """All ranks in one process. A message to one that has left is lost; who is linked with it notices its end."""

    def __init__(self, size: int) -> None:
        self.ranks = [Departures(rank, size) for rank in range(size)]
        self.here = set(range(size))
        self.sent = [0] * size
        self.heard: dict[tuple[int, int], float] = {}  # when a rank heard of another
        self._events: list[tuple[float, int, object]] = []
        self._number = itertools.count()
        self._draw = random.Random(size)
        self.now = 0.0
        for rank in range(size):
            self._at(0.0, ("tell", rank))
        self.run()
        self.links = sum(self.sent)
        self.sent = [0] * size

    def _at(self, when: float, event: object) -> None:
        heapq.heappush(self._events, (when, next(self._number), event))

    def leave(self, when: float, rank: int, how: str = "left") -> None:
        self._at(when, (how, rank))

    def run(self) -> None:
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            match event:
                case ("tell", int(rank)) if rank in self.here:
                    self._tell(rank)
                case ("message", int(rank), bytes(message)) if rank in self.here:
                    sender, departures = self.ranks[rank].read(message)
                    self._learned(rank, self.ranks[rank].hear(sender, departures))
                case ("notice", int(rank), int(gone)) if rank in self.here:
                    self.ranks[rank].suspect(gone, self.now)
                    self._tell(rank)
                case ("left" | "killed" as how, int(rank)):
                    self._end(rank, how)

    def _learned(self, rank: int, departures: dict[int, bool]) -> None:
        for gone in departures:
            self.heard[rank, gone] = self.now
        self._tell(rank)

    def _tell(self, rank: int) -> None:
        for gone in self.ranks[rank].learn(self.ranks[rank].given_up(self.now)):
            self.heard[rank, gone] = self.now
        for to, message in self.ranks[rank].due(self.now).items():
            self._send(rank, to, message)
        pause = self.ranks[rank].pause(self.now)
        if pause is not None:
            self._at(self.now + pause + 1e-9, ("tell", rank))

    def _send(self, rank: int, to: int, message: bytes) -> None:
        self.sent[rank] += 1
        if to in self.here:
            self._at(self.now + self._latency(), ("message", to, message))
        else:
            self._at(self.now + REFUSED, ("notice", rank, to))

    def _latency(self) -> float:
        return LATENCY + self._draw.uniform(0, JITTER)

    def _end(self, rank: int, how: str) -> None:
        audience = self.ranks[rank].audience()
        for to in audience if how == "left" else ():
            self._send(rank, to, self.ranks[rank].farewell(died=False))
        self.here.remove(rank)
        for other in audience:
            # Behind the farewell, on the same connection.
            self._at(self.now + LATENCY + JITTER, ("notice", other, rank))

    def check(self, gone: dict[int, bool]) -> None:
        for rank in self.here:
            assert self.ranks[rank].died == gone, rank


def logarithm(size: int) -> int:
    return (size - 1).bit_length()


@pytest.mark.parametrize("size", [2, 3, 5, 8, 13, 64])
@pytest.mark.parametrize("how", ["left", "killed"])
def test_everybody_hears_of_each(size: int, how: str) -> None:
    for rank in range(size):
        job = Simulation(size)
        job.leave(1.0, rank, how)
        job.run()
        job.check({rank: how == "killed"})
        assert max(job.heard.values()) < 1.0 + GRACE + (logarithm(size) + 1) * (LATENCY + JITTER)


def orders(size: int) -> Iterator[list[int]]:
    yield list(range(size))
    yield list(reversed(range(size)))
    yield [*range(0, size, 3), *range(1, size, 3), *range(2, size, 3)]
    for seed in range(5):
        order = list(range(size))
        random.Random(seed).shuffle(order)
        yield order


@pytest.mark.parametrize("apart", [0.0, 0.0005, 0.003, 0.1])
@pytest.mark.parametrize("size", [3, 8, 33])
def test_who_stays_hears_of_all_others(size: int, apart: float) -> None:
    for order in orders(size):
        for stay in (1, 2):
            job = Simulation(size)
            for number, rank in enumerate(order[:-stay]):
                job.leave(1.0 + number * apart, rank)
            job.run()
            assert job.here == set(order[-stay:])
            for rank in job.here:
                assert job.ranks[rank].died == dict.fromkeys(order[:-stay], False)


def test_a_host_that_fails_takes_its_ranks_with_it() -> None:
    job = Simulation(64)
    for rank in range(16, 32):
        job.leave(1.0, rank, "killed")
    job.run()
    job.check(dict.fromkeys(range(16, 32), True))


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.3])
def test_the_end_of_512_ranks_takes_few_messages_of_each(seconds: float) -> None:
    size, draw = 512, random.Random(7)
    job = Simulation(size)
    # One to each neighbour, and an answer unless that is one of its own: the one half round the ring.
    assert job.links == size * (2 * logarithm(size) - 1)
    for rank in range(size):
        job.leave(1.0 + draw.uniform(0, seconds), rank)
    job.run()
    assert not job.here
    # The farewell goes to both sides, and so does a round of messages in each pause at the most.
    rounds = 1 + seconds / PAUSE
    print(f"within {seconds} s: at most {max(job.sent)} messages of a rank, {sum(job.sent)} of all")
    assert max(job.sent) <= 2 * (1 + rounds) * logarithm(size)


def test_half_of_512_ranks_leave_and_the_others_hear_of_it_within_a_second() -> None:
    size = 512
    job = Simulation(size)
    gone = [rank for rank in range(size) if rank % 3]
    for rank in gone:
        job.leave(1.0, rank)
    job.run()
    for rank in job.here:
        assert job.ranks[rank].died == dict.fromkeys(gone, False)
    assert max(job.heard.values()) < 2.0


def test_neighbours_are_few_and_there() -> None:
    assert Departures(0, 1).neighbours() == []
    here = Departures(0, 6)
    assert here.neighbours() == [5, 4, 2]
    here.learn({5: False, 4: True})
    assert here.neighbours() == [3, 2]
    here.learn({3: False, 2: False, 1: False})
    assert here.neighbours() == []


def test_the_first_word_counts() -> None:
    here = Departures(0, 3)
    assert here.learn({1: False}) == {1: False}
    assert here.learn({1: True}) == {}
    assert here.died == {1: False}


@pytest.mark.parametrize("cut", [0, 8, 19, 21])
def test_a_damaged_message_is_refused(cut: int) -> None:
    message = Departures(1, 3).farewell(died=True)
    assert Departures(0, 3).read(message) == (1, {1: True})
    with pytest.raises(InvalidArgument):
        Departures(0, 3).read(message[:cut])
    with pytest.raises(InvalidArgument):
        Departures(0, 4).read(message)


def test_news_of_another_release_are_told_by_their_version() -> None:
    message = bytearray(Departures(1, 3).farewell(died=True))
    message[4] = 3
    with pytest.raises(
        IncompatiblePeer, match=r"version 3 of the news of a job, and this side version 1 \(update"
    ):
        Departures(0, 3).read(bytes(message))
    message[5] = 2  # it speaks versions 1 and 2 too
    assert Departures(0, 3).read(bytes(message)) == (1, {1: True})
