# SPDX-License-Identifier: BSD-3-Clause
"""What is measured, the same on both sides, and the limits that either side holds it to."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ofipy.pingpong.pipeline import LONGEST_LIST
from ofipy.pingpong.plan import LONGEST_NAME, hold
from ofipy.pingpong.plan import Plan as AnyPlan

__all__ = ["LONGEST_MESSAGE", "MOST_ITERATIONS", "MOST_PROCESSES", "MOST_QPS", "Plan"]

LONGEST_MESSAGE = 1 << 31
MOST_ITERATIONS = 1 << 30
MOST_PROCESSES = 256
MOST_QPS = 1024
MOST_BYTES = 1 << 36  # of the memory of all queue pairs of a side
MOST_DEPTH = 1 << 20
MOST_SIZES = 64

_NUMBERS = {
    "iterations": MOST_ITERATIONS,
    "qps": MOST_QPS,
    "processes": MOST_PROCESSES,
    "depth": MOST_DEPTH,
    "receive_depth": MOST_DEPTH,
    "post_list": LONGEST_LIST,
    "moderation": MOST_DEPTH,
}
_FLAGS = ("bidirectional", "compare", "peak", "pinned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(AnyPlan):
    """What is measured: the client tells the server.

    Raises
    ------
    ValueError
        When a value is beyond what either side does, or of another type.
    """

    program: ClassVar[str] = "fabtests perf"

    test: str
    provider: str | None
    ep_type: str
    iterations: int
    duration: float | None
    margin: float
    bidirectional: bool
    qps: int
    processes: int
    depth: int
    receive_depth: int
    post_list: int
    moderation: int
    compare: bool
    peak: bool
    pinned: bool

    def __post_init__(self) -> None:
        """Hold it to the limits: one that came over the network may say anything."""
        for name, most in _NUMBERS.items():
            hold(name, getattr(self, name), _is_number(getattr(self, name), most), f"1 to {most}")
        for name in _FLAGS:
            hold(name, getattr(self, name), type(getattr(self, name)) is bool, "true or false")
        hold("test", self.test, _is_name(self.test), "a name")
        hold("provider", self.provider, self.provider is None or _is_name(self.provider), "a name")
        hold("ep_type", self.ep_type, self.ep_type in ("rdm", "msg"), "rdm or msg")
        hold("duration", self.duration, self.duration is None or _is_time(self.duration), "a time")
        hold("margin", self.margin, _is_time(self.margin), "a time")
        known = 0 < len(self.sizes) <= MOST_SIZES
        known = known and all(_is_number(size, LONGEST_MESSAGE) for size in self.sizes)
        hold("sizes", self.sizes, known, f"up to {MOST_SIZES} of 1 to {LONGEST_MESSAGE} bytes")
        for name in ("moderation", "post_list"):
            hold(
                name,
                getattr(self, name),
                getattr(self, name) <= self.depth,
                f"at most {self.depth}, the depth",
            )
        needed = 2 * max(self.sizes) * self.qps * self.processes
        hold("memory of all queue pairs", needed, needed <= MOST_BYTES, f"at most {MOST_BYTES} bytes")


def _is_number(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0
