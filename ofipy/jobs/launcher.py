# SPDX-License-Identifier: BSD-3-Clause
"""What a launcher must give, and how its variables are read."""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self

from ofipy._base.binding import nanoseconds
from ofipy._base.errors import ConfigError, TimedOut

__all__ = ["FENCES", "Deadline", "Environment", "Found", "Launcher"]

FENCES = 2
"""Of a job: the key, then the partners."""


class Deadline:
    """A moment by which something must have happened."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        """On the clock of ``time.monotonic()``."""

    @classmethod
    def of(cls, timeout: float | None) -> Self:
        """What a caller asks for; None: never.

        Raises
        ------
        InvalidArgument
            When it is no time.
        """
        asked = nanoseconds(timeout)
        return cls(math.inf if asked < 0 else asked / 1e9)

    def left(self) -> float:
        """Seconds until then, never below 0."""
        return max(self.end - time.monotonic(), 0.0)

    def passed(self) -> bool:
        """Whether it is over."""
        return time.monotonic() >= self.end

    def missed(self, what: str, remedy: str | None = None) -> TimedOut:
        """The error of whoever waited in vain."""
        return TimedOut(
            f"{what} within {self.seconds:g} s",
            operation="job",
            remedy=remedy
            or "every process of the job must call ofipy.job(); OFIPY_JOB_TIMEOUT is how long the others wait",
        )


class Launcher(Protocol):
    """A launcher that this process has joined."""

    rank: int
    size: int
    host: str
    """Name of this host, as the launcher knows it."""

    def fence(
        self, values: Mapping[str, bytes], wanted: Iterable[str], deadline: Deadline
    ) -> dict[str, bytes]:
        """Put `values`, wait until every process of the job is here, get what is `wanted`.

        Raises
        ------
        FabricError
            :class:`TimedOut` where a process did not come; others as the launcher fails.
        """
        ...

    def close(self) -> None:
        """Take leave of the launcher. A second call does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A launcher that somebody named, or whose variables are set; nothing was asked of it yet."""

    name: str
    rank: int
    size: int | None
    """None: only the launcher knows."""
    variables: Mapping[str, str]
    """Those that told."""
    join: Callable[[Deadline, bytes | None], Launcher]
    """With the key that this process has already."""
    key: bytes | None = None
    """The job's key, where the launcher hands it over by other ways than a fence."""


class Environment:
    """The variables of one launcher.

    Parameters
    ----------
    launcher : str
        Its name, for errors.
    marks : iterable of str
        Any of these says that it is this launcher's.
    remedy : str
        What to do when they are half set.
    """

    def __init__(self, launcher: str, marks: Iterable[str], remedy: str) -> None:
        self.launcher = launcher
        self.marks = tuple(marks)
        self.remedy = remedy
        self.read: dict[str, str] = {}

    def is_set(self) -> bool:
        """Whether any of the marks is."""
        return any(os.environ.get(name) for name in self.marks)

    def reason(self) -> str:
        """Why it is not this launcher."""
        return f"{' and '.join(self.marks[:2])} are not set"

    def optional(self, name: str) -> str | None:
        """A variable; empty counts as not set."""
        text = os.environ.get(name) or None
        if text is not None:
            self.read[name] = text
        return text

    def text(self, *names: str) -> str:
        """The first of these that is set.

        Raises
        ------
        ConfigError
            When none is.
        """
        for name in names:
            text = self.optional(name)
            if text is not None:
                return text
        shown = ", ".join(name for name in self.marks if os.environ.get(name))
        raise self.wrong(f"{shown} is set and {' or '.join(names)} is not")

    def number(self, *names: str, least: int = 0) -> int:
        """The first of these that is set, as a whole number.

        Raises
        ------
        ConfigError
            When none is, or it is no such number.
        """
        text = self.text(*names)
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            name = next(name for name in names if os.environ.get(name))
            raise self.wrong(f"{name}={text!r} in the environment; a whole number from {least} on is meant")
        return value

    def rank_and_size(self, rank: tuple[str, ...], size: tuple[str, ...]) -> tuple[int, int]:
        """Both, as they fit each other.

        Raises
        ------
        ConfigError
            When one is missing, no number, or the rank is beyond the size.
        """
        found, of = self.number(*rank), self.number(*size, least=1)
        if found >= of:
            names = [next(name for name in each if os.environ.get(name)) for each in (rank, size)]
            raise self.wrong(f"{names[0]}={found} and {names[1]}={of}; ranks are 0 to {of - 1}")
        return found, of

    def wrong(self, what: str) -> ConfigError:
        """The error about variables of this launcher."""
        return ConfigError(f"{what} ({self.launcher})", operation="job", remedy=self.remedy)
