# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a measuring program and its rows: sizes, repetitions, the time that counts, and what one size took.

``ofipy pingpong``, ``fabtests perf`` and ``fabtests scale`` each have a class of plans with further fields. ``fabtests
compare`` has a row for each size; what decides its repetitions and its time is here, too.
"""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from ofipy._base.versions import Versions
from ofipy.pingpong.sizes import default_iterations

__all__ = [
    "LONGEST_NAME",
    "NAME",
    "VERSIONS",
    "WINDOW",
    "Measurement",
    "PingPongPlan",
    "Plan",
    "Span",
    "Timed",
    "count_repetitions",
    "fill_time",
    "hold",
]

VERSIONS = Versions(1)
"""Of a ping-pong's plan as it travels from client to server."""
NAME = "the plan of a ping-pong"
LONGEST_NAME = 200
"""Characters of a name in a plan, and of what errors quote of one."""

WINDOW = 64
"""Messages of a window, as in libfabric's and other bandwidth programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What all plans have. The client sends its plan to the server, so options need to be given on one side only."""

    program: ClassVar[str] = "the plan"
    """Whose plan it is, for errors."""

    sizes: tuple[int, ...]
    """Message sizes in bytes, in order."""
    iterations: int | None = None
    """Timed repetitions of each size; None: a number that suits the size."""

    def count(self, size: int) -> int:
        """Timed repetitions for messages of `size` bytes."""
        return count_repetitions(self.iterations, size)

    def as_dict(self) -> dict[str, Any]:
        """For the other side."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """From the other side.

        Raises
        ------
        ValueError
            When it is of another version.
        """
        names = {each.name for each in fields(cls)}
        if values.keys() != names:
            differing = ", ".join(sorted(str(each)[:LONGEST_NAME] for each in values.keys() ^ names))
            raise ValueError(f"it is of another version of {cls.program}: {differing}")
        hold("sizes", values["sizes"], isinstance(values["sizes"], list), "a list")
        return cls(**{**values, "sizes": tuple(values["sizes"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class PingPongPlan(Plan):
    """The steps of a ping-pong."""

    warmup: int = 10
    """Round trips before the clock starts."""
    verify: bool = False
    """Check every byte of every message, within the timed part."""
    delivery: bool = False
    """Ask for completion at delivery."""
    samples: int = 0
    """Round trips timed one by one after the timed part, for percentiles."""

    def encode(self) -> bytes:
        """Write the plan for the other side."""
        return json.dumps({"protocol": VERSIONS.newest, **self.as_dict()}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "PingPongPlan":
        """Read a plan.

        Raises
        ------
        IncompatiblePeer
            When the other side speaks another version.
        ValueError
            When it is no plan.
        """
        values = json.loads(data)
        theirs = values.pop("protocol", None)
        hold("protocol", theirs, isinstance(theirs, int) and theirs > 0, "a version")
        if not VERSIONS.include_one_of(Versions(theirs)):
            raise VERSIONS.incompatible(Versions(theirs), NAME)
        return cls.from_dict(values)


def hold(name: str, value: Any, good: bool, meant: str) -> None:
    """Hold a value of a plan to what is meant: a plan that came over the network may say anything.

    Raises
    ------
    ValueError
        When it is not good.
    """
    if not good:
        raise ValueError(f"{name} is {str(value)[:LONGEST_NAME]!r}; {meant} is meant")


def count_repetitions(iterations: int | None, size: int, *, factor: int = 1) -> int:
    """Repetitions for messages of `size` bytes: those asked for, or `factor` times those that suit the size."""
    return default_iterations(size) * factor if iterations is None else iterations


def fill_time(time: float, taken: float, *, least: int = 1, most: int | None = None) -> int:
    """How many repetitions fill a time, when one takes `taken` of it."""
    count = max(least, round(time / taken))
    return count if most is None else min(count, most)


@dataclass(frozen=True, slots=True)
class Span:
    """The time that counts, within the time in which all processes take part."""

    begin: float
    """Seconds, of :func:`time.monotonic`."""
    margin: float
    """Seconds before and after."""
    seconds: float
    """That count."""

    @property
    def end(self) -> float:
        """From here on nobody begins anything."""
        return self.begin + 2 * self.margin + self.seconds

    def counts(self, now: float) -> bool:
        """Whether what ended now counts."""
        return 0 <= now - self.begin - self.margin < self.seconds


@dataclass(frozen=True, slots=True)
class Timed:
    """What one size took."""

    bytes: int
    """Message size."""
    iterations: int
    """Timed repetitions."""
    seconds: float
    """Their duration."""
    transfers: int = 1
    """Messages of one repetition: 2 of a round trip."""

    @property
    def total(self) -> int:
        """Bytes moved."""
        return self.bytes * self.iterations * self.transfers

    @property
    def usec_per_transfer(self) -> float:
        """Mean time of one transfer, microseconds."""
        return self.seconds * 1e6 / (self.iterations * self.transfers)

    @property
    def mb_per_sec(self) -> float:
        """Million bytes per second."""
        return self.total / self.seconds / 1e6

    @property
    def million_per_sec(self) -> float:
        """Million transfers per second."""
        return 1 / self.usec_per_transfer


@dataclass(frozen=True, slots=True)
class Measurement(Timed):
    """One row of a ping-pong. One transfer is one message one way, half a round trip."""

    transfers: int = 2
    p50_usec: float | None = None
    """Median of single transfers, microseconds; None without samples."""
    p99_usec: float | None = None
    """99th percentile of the same."""
