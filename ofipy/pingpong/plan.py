# SPDX-License-Identifier: BSD-3-Clause
"""What one run of a ping-pong does, agreed between both sides, and what it found."""

import json
from dataclasses import asdict, dataclass

from ofipy.pingpong.sizes import default_iterations

__all__ = ["Measurement", "Plan"]

PROTOCOL = 1  # version of the plan as it travels from client to server


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a ping-pong.

    The client sends its plan to the server, so options need to be given on one side only.
    """

    sizes: tuple[int, ...]
    """Message sizes in bytes, in order."""
    iterations: int | None = None
    """Timed round trips of each size; None: a number that suits the size."""
    warmup: int = 10
    """Round trips before the clock starts."""
    verify: bool = False
    """Check every byte of every message, within the timed part."""
    delivery: bool = False
    """Ask for completion at delivery."""
    samples: int = 0
    """Round trips timed one by one after the timed part, for percentiles."""

    def count(self, size: int) -> int:
        """Timed round trips for messages of `size` bytes."""
        return default_iterations(size) if self.iterations is None else self.iterations

    def encode(self) -> bytes:
        """Write the plan for the other side."""
        return json.dumps({"protocol": PROTOCOL, **asdict(self)}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Plan":
        """Read a plan.

        Raises
        ------
        ValueError
            When the other side speaks another version.
        """
        fields = json.loads(data)
        theirs = fields.pop("protocol", None)
        if theirs != PROTOCOL:
            raise ValueError(
                f"the other side speaks version {theirs} of the plan, this one {PROTOCOL}: "
                "install the same release on both"
            )
        fields["sizes"] = tuple(fields["sizes"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One row of a ping-pong. One transfer is one message one way, half a round trip."""

    bytes: int
    """Message size."""
    iterations: int
    """Timed round trips."""
    seconds: float
    """Their duration."""
    p50_usec: float | None = None
    """Median of single transfers, microseconds; None without samples."""
    p99_usec: float | None = None
    """99th percentile of the same."""

    @property
    def total(self) -> int:
        """Bytes moved, both ways together."""
        return self.bytes * self.iterations * 2

    @property
    def usec_per_transfer(self) -> float:
        """Mean time of one transfer, microseconds."""
        return self.seconds * 1e6 / (self.iterations * 2)

    @property
    def mb_per_sec(self) -> float:
        """Million bytes per second, one direction at a time."""
        return self.total / self.seconds / 1e6

    @property
    def million_per_sec(self) -> float:
        """Million transfers per second."""
        return 1 / self.usec_per_transfer
