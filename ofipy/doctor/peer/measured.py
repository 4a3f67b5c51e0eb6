# SPDX-License-Identifier: BSD-3-Clause
"""What was measured between two hosts."""

from dataclasses import dataclass, field
from typing import Any

from ofipy.doctor.peer.interface import Path
from ofipy.doctor.peer.programs import Programs
from ofipy.ping.tally import Summary

__all__ = ["Flow", "Measured", "Probes"]


@dataclass(slots=True)
class Flow:
    """One stream in one direction."""

    bytes: int = 0
    seconds: float = 0.0
    error: str = ""
    """Why there is no figure."""
    segments: int = 0
    """With payload that the sender's TCP sent; 0: it is no TCP, or not known."""
    repeated: int = 0
    delivered: int = 0
    marked: int = 0

    @property
    def rate(self) -> float | None:
        """Bytes per second; None: nothing was measured."""
        return self.bytes / self.seconds if self.bytes and self.seconds > 0 and not self.error else None

    def describe(self) -> dict[str, Any]:
        """For the document."""
        rate = self.rate
        return {
            "bytes": self.bytes,
            "seconds": round(self.seconds, 6),
            "mb_per_sec": None if rate is None else round(rate / 1e6, 3),
            "segments": self.segments or None,
            "repeated": self.repeated if self.segments else None,
            "error": self.error or None,
        }


@dataclass(slots=True)
class Probes:
    """Datagrams of several sizes, none of which may be fragmented."""

    sizes: list[int] = field(default_factory=list)
    """Of packets with their headers, bytes."""
    arrived: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Measured:
    """Everything; what was not measured is None or empty."""

    peer: str
    """Name of the other host."""
    way: str = ""
    """Provider that carried the messages."""
    own_providers: list[str] = field(default_factory=list)
    peer_providers: list[str] = field(default_factory=list)
    unreached: dict[str, str] = field(default_factory=dict)
    """Providers that both have and that do not lead there, with reasons."""
    round_trips: Summary | None = None
    clock: tuple[float, float] | None = None
    """How far the other clock is ahead, and by how much that may be wrong; seconds."""
    path: Path | None = None
    peer_path: Path | None = None
    probes: Probes | None = None
    raw: dict[str, Flow] = field(default_factory=dict)
    """Of a bare connection, by direction: ``to`` the peer, ``from`` it."""
    provider: dict[str, Flow] = field(default_factory=dict)
    programs: Programs = field(default_factory=Programs)
    """Of this host, that send to the other one."""
    lost: str = ""
    """Why the measurement ended early."""

    @property
    def raw_is_pair(self) -> bool:
        """Whether the bare connection is a queue pair of the device, else a socket."""
        return self.way == "verbs"

    @property
    def is_hardware(self) -> bool:
        """Whether both interfaces are hardware, whose rate is known."""
        return all(each is not None and each.megabits is not None for each in (self.path, self.peer_path))

    def describe(self) -> dict[str, Any]:
        """For the document."""
        trips = self.round_trips
        return {
            "way": self.way,
            "round_trip_usec": None
            if trips is None
            else {
                "min": trips.min_usec,
                "average": trips.average_usec,
                "p99": trips.p99_usec,
                "max": trips.max_usec,
            },
            "clock_seconds": None if self.clock is None else round(self.clock[0], 6),
            "path": None if self.path is None else self.path.as_dict(),
            "peer_path": None if self.peer_path is None else self.peer_path.as_dict(),
            "raw_over": "queue pair" if self.raw_is_pair else "socket",
            "raw": {direction: each.describe() for direction, each in self.raw.items()},
            "provider": {direction: each.describe() for direction, each in self.provider.items()},
            "application": self.programs.describe(),
        }
