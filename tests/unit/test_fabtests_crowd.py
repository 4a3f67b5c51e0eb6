# SPDX-License-Identifier: BSD-3-Clause
"""The case ``fan-in``: what its receiver counts, and what becomes of that."""

import queue
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fabtests.base.fairness import jain
from fabtests.compare import crowd
from fabtests.compare.case import Round
from fabtests.compare.cases import CASES
from fabtests.compare.crowd import SENDERS, WINDOW, Crowd, Words
from fabtests.compare.runner import Row, select_rows
from fabtests.compare.statistics import Summary

ABSENT = 7


class Room:
    """What the sides of a crowd in one process share: a queue for each sender, and a clock that counts turns.

    The receiver takes one window of each sender in a turn, however the scheduler treats their threads.
    """

    def __init__(self) -> None:
        self.windows: list[queue.Queue[Words]] = [queue.Queue(1) for _ in range(SENDERS)]
        self.turns = 0

    def clock(self) -> float:
        return self.turns / 64  # exact in binary

    def take_turns(self) -> Iterator[Words]:
        sending = set(range(SENDERS))
        while sending:
            for number in sorted(sending):
                if number == ABSENT and self.windows[number].empty():
                    continue
                words = self.windows[number].get(timeout=60)
                if words[0] == SENDERS:
                    sending.remove(number)
                yield words
            self.turns += 1


class Guest(Crowd):
    """One side of the crowd; one of the senders is slow to say anything that counts."""

    def __init__(self, room: Room, number: int | None = None) -> None:
        super().__init__(number is None)
        self._room, self._number = room, number or 0

    def send(self, words: Words) -> None:
        if words[0] == ABSENT:
            threading.Event().wait(0.01)
        else:
            self.send_last(words)

    def send_last(self, words: Words) -> None:
        self._room.windows[self._number].put(words.copy(), timeout=60)

    def receive(self) -> Iterator[Words]:
        return self._room.take_turns()

    def version(self) -> str:
        return "1"

    def offer(self) -> Any:
        return None

    def meet(self, other: Any) -> None:
        pass

    def close(self) -> None:
        pass


def test_the_messages_of_each_are_counted_while_all_send(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    monkeypatch.setattr(crowd, "monotonic", room.clock)
    monkeypatch.setattr(crowd, "SECONDS", 0.25)
    monkeypatch.setattr(crowd, "MARGIN", 0.125)
    senders = [
        threading.Thread(target=Guest(room, number).fan_in, args=(number,)) for number in range(SENDERS)
    ]
    for sender in senders:
        sender.start()
    counts, seconds = Guest(room).fan_in(0)
    for sender in senders:
        sender.join(20)
    assert all(windows.empty() for windows in room.windows)
    assert seconds == 0.25
    expected = np.full(SENDERS, 16 * WINDOW)
    expected[ABSENT] = 0
    assert counts.tolist() == expected.tolist()


def test_the_index_of_jain() -> None:
    assert jain(np.full(SENDERS, 5)) == pytest.approx(1.0)
    assert jain(np.eye(SENDERS, dtype=np.int64)[3]) == pytest.approx(1 / SENDERS)
    assert jain(np.zeros(SENDERS, np.int64)) == 0.0


def test_a_row_tells_the_worst_of_its_rounds() -> None:
    case = CASES["fan-in"]
    none = np.zeros(0)
    rounds = [
        Round(1.0, none, {"jain": value, "starved": starved}) for value, starved in ((0.99, 0), (0.5, 2))
    ]
    facts = case.sum_up_facts(rounds)
    assert facts == {"jain": 0.5, "starved": 2}
    ((line,),) = select_rows(case, set(), set())
    row = Row(case, line, Summary(1.0, 0.0, None, None), {}, facts)
    document = row.document()
    assert (document["jain"], document["starved"]) == (0.5, 2)
    assert [(bar.key, met) for bar, met in row.bars()] == [("", None), ("jain", False), ("starved", False)]
    assert [bar["met"] for bar in document["bars"] if bar.get("key")] == [False, False]
