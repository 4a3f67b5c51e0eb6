# SPDX-License-Identifier: BSD-3-Clause
"""What every race is: one turn on an endpoint that is its own peer, which ends as it began."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from numbered import message
from pair import PATIENCE

import ofipy

TAG = 3


@dataclass
class Stage:
    """What a turn works with."""

    target: str
    ep: ofipy.Endpoint
    me: ofipy.Peer
    random: random.Random
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def new(self) -> int:
        """Number of a new message."""
        return next(self.numbers)

    def send(self, number: int, size: int) -> None:
        """Send a message, in a moment."""
        self.pause()
        self.ep.tsend(message(number, size), self.me, tag=TAG).wait(timeout=PATIENCE)

    def pause(self) -> None:
        """A moment, long enough for the others to be anywhere."""
        time.sleep(self.random.uniform(0, 0.002))


@dataclass(frozen=True)
class Scenario:
    """One race."""

    turn: Callable[[Stage], None]
    needs: str | None


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    name: str, *, needs: str | None = None
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Enter a function into the table."""

    def enter(turn: Callable[[Stage], None]) -> Callable[[Stage], None]:
        SCENARIOS[name] = Scenario(turn, needs)
        return turn

    return enter
