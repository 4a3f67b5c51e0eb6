# SPDX-License-Identifier: BSD-3-Clause
"""What every case of a storm is: rounds over a pair of endpoints, each of which checks all that came of it."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from numbered import SIZES, message
from pair import PATIENCE, Pair
from storm import Storm

import ofipy

TAG = 7

Rounds = Iterator[None]


@dataclass
class Scene:
    """What a case works with."""

    storm: Storm
    target: str
    pair: Pair
    random: random.Random
    helper: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    """A thread that does what has to happen while this one waits."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Of messages; none is used twice."""

    @property
    def a(self) -> ofipy.Endpoint:
        """Whose calls are interrupted."""
        return self.pair.a

    @property
    def b(self) -> ofipy.Endpoint:
        """The other one."""
        return self.pair.b

    @property
    def counts_receives(self) -> bool:
        """Whether the core has the receives, so that statistics count them."""
        return not self.a.info.offloads_matching

    def later(self, call: Callable[[], Any]) -> Future[Any]:
        """Do it in another thread, in a moment."""
        pause = self.random.uniform(0, 0.002)
        return self.helper.submit(lambda: (time.sleep(pause), call())[1])

    def new(self) -> tuple[int, int]:
        """Number and size of a new message."""
        return next(self.numbers), self.random.choice(SIZES)

    def close(self) -> None:
        self.helper.shutdown()
        self.pair.close()


@dataclass(frozen=True)
class Case:
    """A public call, or a few, in a storm."""

    rounds: Callable[[Scene], Rounds]
    """Goes on for ever; yields after each round, when all that it began is over and was right."""
    needs: str | None
    """A capability of the provider, or ``connections``."""
    connected: bool
    """Has a meaning for connected endpoints too."""
    options: Callable[[ofipy.Domain], dict[str, Any]]
    """Of the endpoint whose calls are interrupted."""


CASES: dict[str, Case] = {}


def case(
    name: str,
    *,
    needs: str | None = None,
    connected: bool = True,
    options: Callable[[ofipy.Domain], dict[str, Any]] = lambda _: {},
) -> Callable[[Callable[[Scene], Rounds]], Callable[[Scene], Rounds]]:
    """Enter a function into the table."""

    def enter(rounds: Callable[[Scene], Rounds]) -> Callable[[Scene], Rounds]:
        CASES[name] = Case(rounds, needs, connected, options)
        return rounds

    return enter


def litter(size: int) -> list[bytes]:
    """Fill memory that was just freed with something else: whoever still reads it sends this."""
    return [message(2**60, size) for _ in range(3)]


def receive(scene: Scene, *, tagged: bool = True) -> ofipy.Message:
    """What `b` has got, not interrupted."""
    request = scene.b.trecv(tag=TAG) if tagged else scene.b.recv()
    return request.wait(timeout=PATIENCE)


def send(scene: Scene, number: int, size: int, *, tagged: bool = True) -> ofipy.Request:
    """A message to `a`, not interrupted."""
    data = message(number, size)
    return scene.b.tsend(data, scene.pair.to_a, tag=TAG) if tagged else scene.b.send(data, scene.pair.to_a)
