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


class Room(Crowd):
    """A crowd in one process, over a queue; one of them is slow to say anything that counts."""

    def __init__(self, first: bool, words: "queue.Queue[Words]") -> None:
        super().__init__(first)
        self._words = words

    def send(self, words: Words) -> None:
        if words[0] == ABSENT:
            threading.Event().wait(0.01)
        else:
            self._words.put(words.copy())

    def send_last(self, words: Words) -> None:
        self._words.put(words.copy())

    def receive(self) -> Iterator[Words]:
        while True:
            yield self._words.get(timeout=20)

    def version(self) -> str:
        return "1"

    def offer(self) -> Any:
        return None

    def meet(self, other: Any) -> None:
        pass

    def close(self) -> None:
        pass


def test_the_messages_of_each_are_counted_while_all_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "SECONDS", 0.2)
    monkeypatch.setattr(crowd, "MARGIN", 0.1)
    words: queue.Queue[Words] = queue.Queue(4)
    senders = [
        threading.Thread(target=Room(False, words).fan_in, args=(number,)) for number in range(SENDERS)
    ]
    for sender in senders:
        sender.start()
    counts, seconds = Room(True, words).fan_in(0)
    for sender in senders:
        sender.join(20)
    assert words.empty()
    assert len(counts) == SENDERS
    assert seconds >= 0.2
    assert np.flatnonzero(counts == 0).tolist() == [ABSENT]
    assert (counts % WINDOW == 0).all()


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
