# SPDX-License-Identifier: BSD-3-Clause
"""The bars: how ofipy has to stand against a peer in the same run."""

from dataclasses import dataclass

__all__ = ["BARS", "Bar", "find_bars"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound on the ratio ofipy / peer of one row."""

    case: str
    mode: str
    size: int
    """Bytes of a message; queue depth in ``match-depth``."""
    peer: str
    limit: float
    at_least: bool = False
    """The ratio is to reach the limit, rather than to stay within it."""

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g} × {self.peer}"

    def met(self, ratio: float) -> bool:
        """Whether this ratio does."""
        return ratio >= self.limit if self.at_least else ratio <= self.limit


MIB = 1 << 20

BARS = (
    Bar("shm-latency", "blocking", 8, "mpi4py", 0.4),
    Bar("shm-latency", "prepared", 8, "mpi4py", 0.25),
    Bar("shm-latency", "native", 8, "libfabric", 1.05),
    Bar("shm-bandwidth", "array", MIB, "attach", 0.92, at_least=True),
    Bar("shm-bandwidth", "domain", MIB, "attach", 2.0, at_least=True),
    Bar("shm-bandwidth", "domain-rewritten", MIB, "attach", 2.0, at_least=True),
    Bar("shm-rma", "target-idle", MIB, "attach", 2.0, at_least=True),
    Bar("shm-rma", "target-reads", MIB, "attach", 2.0, at_least=True),
    Bar("shm-rma", "native", 8, "tagged", 1.0),
    Bar("shm-rma", "blocking", 8, "tagged", 1.0),
    Bar("shm-rma", "prepared", 8, "tagged", 1.0),
    Bar("tcp-latency", "blocking", 8, "socket", 1.15),
    Bar("tcp-latency", "native", 8, "libfabric", 1.05),
    Bar("tcp-rate", "batch", 8, "libfabric", 5.0, at_least=True),
    Bar("tcp-bandwidth", "array", MIB, "socket", 0.95, at_least=True),
    Bar("tcp-bandwidth", "array", MIB, "libfabric", 0.95, at_least=True),
    Bar("match-depth", "expected", 16384, "depth-1", 1.5),
    Bar("match-depth", "unexpected", 16384, "depth-1", 1.5),
)


def find_bars(case: str, mode: str, size: int) -> tuple[Bar, ...]:
    """The bars that this row has to meet."""
    return tuple(bar for bar in BARS if (bar.case, bar.mode, bar.size) == (case, mode, size))
