# SPDX-License-Identifier: BSD-3-Clause
"""The bars: how ofipy has to stand against a peer in the same run."""

from dataclasses import dataclass
from functools import cache

from fabtests.compare.case import Line
from ofipy.pingpong.machine import cpu_model, read_cpuinfo

__all__ = ["BARS", "BEST", "Bar", "find_bars"]

BEST = "best"
"""In place of a peer's name: the best of several."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound on the ratio ofipy / peer of one row, or on what else the row tells."""

    case: str
    mode: str
    size: int
    """Bytes of a message; queue depth in ``match-depth``."""
    peer: str
    limit: float
    at_least: bool = False
    """The ratio is to reach the limit, rather than to stay within it."""
    way: str = ""
    """As of the row."""
    key: str = ""
    """A key of the row that is bound, in place of the ratio; there is no peer then."""
    among: tuple[str, ...] = ()
    """With :data:`BEST` as peer: the names of those of which the best counts. One that is absent counts for nothing."""

    processor: str = ""
    """A word in the name of the processors that it is for; empty: all."""

    @property
    def line(self) -> Line:
        """The row that it is for."""
        return Line(self.mode, self.size, self.way)

    def __str__(self) -> str:
        what = self.key or f"× {self.peer}"
        return f"{'≥' if self.at_least else '≤'} {self.limit:g} {what}"

    def met(self, value: float) -> bool:
        """Whether this ratio, or value of the key, does."""
        return value >= self.limit if self.at_least else value <= self.limit


KIB, MIB = 1 << 10, 1 << 20

COPIERS = ("attach", "ucx", "libfabric", "mpi4py")
"""Who moves large messages well over shared memory; mode by mode, those of them that have it."""

# Limits for 8 bytes, 64 KiB and 16 MiB.
OF_ALLREDUCE = (
    ("allreduce", "mpi4py", "shm", (0.5, 0.7, 0.8)),
    ("prepared-allreduce", "mpi4py", "shm", (0.3,)),
    ("allreduce", "mpi4py-serial", "shm", (1.0, 0.9, 0.9)),
    ("allreduce", "gloo", "shm", (0.1, 0.3, 0.5)),
    ("allreduce", "gloo", "tcp", (0.8, 0.9, 0.9)),
)
OTHER_KINDS = (
    *("broadcast", "reduce", "gather", "scatter", "allgather", "alltoall"),
    *("reduce_scatter", "scan", "exscan"),
)
COLLECTIVE_SIZES = (8, 64 * KIB, 16 * MIB)

BARS = (
    Bar("shm-latency", "blocking", 8, "mpi4py", 0.4),
    Bar("shm-latency", "prepared", 8, "mpi4py", 0.25),
    Bar("shm-latency", "native", 8, "libfabric", 1.0),
    Bar("shm-latency", "native", 8, "ucx", 1.2),
    Bar("shm-latency", "native", 65536, "ucx", 1.1),
    Bar("shm-latency", "native", MIB, "ucx", 1.1),
    *(
        Bar("shm-bandwidth", mode, MIB, "attach", limit, at_least=True, processor="EPYC")
        for mode, limit in (
            ("array", 2.0),
            ("array-distinct", 1.4),
            ("array-rewritten", 1.6),
            ("domain", 2.0),
            ("domain-rewritten", 2.0),
        )
    ),
    *(
        Bar("shm-bandwidth", mode, size, BEST, 0.95, at_least=True, among=COPIERS)
        for mode in ("array", "array-distinct", "array-rewritten", "domain", "domain-rewritten")
        for size in (64 * KIB, MIB, 4 * MIB)
    ),
    *(
        Bar("array-contended", mode, MIB, BEST, 1.1, among=("pipeline", "attach-only"))
        for mode in ("array-contended", "array")
    ),
    *(
        Bar("strided", mode, size, BEST, 1.0, at_least=True, among=("mpi4py", "numpy"))
        for mode in ("column", "block")
        for size in (64 * KIB, MIB, 4 * MIB)
    ),
    Bar("shm-rma", "target-idle", MIB, "attach", 2.0, at_least=True),
    Bar("shm-rma", "target-reads", MIB, "attach", 2.0, at_least=True),
    Bar("shm-rma", "native", 8, "tagged", 1.0),
    Bar("shm-rma", "blocking", 8, "tagged", 1.0),
    Bar("shm-rma", "prepared", 8, "tagged", 1.0),
    Bar("shm-rate", "native", 8, "ucx", 0.6, at_least=True),
    Bar("shm-rate", "request", 1024, "mpi4py", 1.0, at_least=True),
    Bar("rma-rate", "batch", 8, "ucx", 0.3, at_least=True),
    Bar("atomic-latency", "blocking", 8, "write", 2.0),
    Bar("atomic-latency", "blocking", 8, "mpi4py", 1.0),
    Bar("atomic-latency", "native", 8, "ucx", 4.0),
    Bar("tcp-latency", "blocking", 8, "socket", 1.15),
    Bar("tcp-latency", "native", 8, "libfabric", 1.05),
    Bar("tcp-rate", "batch", 8, "libfabric", 5.0, at_least=True),
    Bar("tcp-bandwidth", "array", MIB, "socket", 0.95, at_least=True),
    Bar("tcp-bandwidth", "array", MIB, "libfabric", 0.95, at_least=True),
    Bar("tcp-bandwidth", "request", 65536, "socket", 0.9, at_least=True),
    Bar("tls-latency", "native", 8, "openssl", 1.15),
    Bar("tls-bandwidth", "array", MIB, "openssl", 0.9, at_least=True),
    Bar("match-depth", "expected", 16384, "depth-1", 1.5),
    Bar("match-depth", "unexpected", 16384, "depth-1", 1.5),
    Bar("await", "loop", 8, "uvloop", 0.25),
    Bar("await", "loop-100", 8, "uvloop", 1.0),
    Bar("await", "await", 8, "uvloop", 0.5),
    Bar("await", "await-100", 8, "uvloop", 1.2),
    Bar("threads", "request", 8, "one-thread", 0.95, at_least=True),
    Bar("threads", "shared", 8, "one-thread", 0.8, at_least=True),
    Bar("fan-in", "batch", 8, "mpi4py", 2.0, at_least=True),
    Bar("fan-in", "batch", 8, "", 0.95, at_least=True, key="jain"),
    Bar("fan-in", "batch", 8, "", 0, key="starved"),
    Bar("start", "open", 0, "numpy", 0.05),
    Bar("start", "import", 0, "numpy", 1.15),
    *(Bar("link-latency", mode, 8, "shm", 1.10, way="shm") for mode in ("native", "prepared", "blocking")),
    *(Bar("link-latency", mode, 8, "tcp", 1.05, way="tcp") for mode in ("native", "prepared", "blocking")),
    *(
        Bar("link-bandwidth", mode, MIB, way, 0.95, at_least=True, way=way)
        for mode in ("array", "domain")
        for way in ("shm", "tcp")
    ),
    *(
        Bar("collectives", mode, size, peer, limit, way=way)
        for mode, peer, way, limits in OF_ALLREDUCE
        for size, limit in zip(COLLECTIVE_SIZES, limits, strict=False)
    ),
    *(
        Bar("collectives", kind, size, "mpi4py", limit, way="shm")
        for kind in OTHER_KINDS
        for size, limit in zip(COLLECTIVE_SIZES, (0.5, 0.7, 0.9), strict=True)
    ),
    Bar("collectives", "barrier", 0, "mpi4py", 0.5, way="shm"),
    Bar("collectives", "domain-allreduce", 16 * MIB, "mpi4py", 0.5, way="shm"),
    Bar("collectives", "native-allreduce", 8, "tagged", 1.5, way="shm"),
    Bar("collectives", "broadcast", 16 * MIB, "array", 1 / 0.9, way="shm"),
    Bar("collectives", "kernel-sum", 16 * MIB, "numpy", 1 / 0.8, way="shm"),
    Bar("verbs-latency", "native-send", 8, "perftest", 1.1),
    Bar("verbs-latency", "native-write", 8, "perftest", 1.1),
    Bar("verbs-latency", "native", 8, "libfabric", 1.0),
    Bar("verbs-bandwidth", "native-write", 65536, "perftest", 1 / 1.1, at_least=True),
)


@cache
def this_processor() -> str:
    """The name of the processor here."""
    return cpu_model(read_cpuinfo())


def find_bars(case: str, line: Line) -> tuple[Bar, ...]:
    """The bars that this row has to meet on this processor."""
    found = (bar for bar in BARS if bar.case == case and bar.line == line)
    return tuple(bar for bar in found if bar.processor in this_processor())
