# SPDX-License-Identifier: BSD-3-Clause
"""What a rule has found: a state, the measured figure beside its threshold, where it comes from, and what to do."""

import enum
from dataclasses import dataclass

__all__ = ["Finding", "Rule", "State"]


class State(enum.StrEnum):
    """How a rule ended."""

    OK = "ok"
    WARNING = "warning"
    """It works, with less than it could."""
    FAILED = "failed"
    """What was asked for cannot work, or is far from what the hardware can do."""
    ABSENT = "absent"
    """There is nothing to judge: the file, the counter or the device is not there."""
    UNJUDGED = "unjudged"
    """There is a figure, but no threshold is right for it: a device of software, an emulated processor."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is compared with what, and what to do where it does not hold."""

    id: str
    """What scripts compare with: it never changes."""
    name: str
    """What people read."""
    step: str
    """The rung of the ladder: ``process``, ``host``, ``link``, ``pcie``, ``reach``, ``raw``, ``provider``,
    ``congestion``, ``application``."""
    remedy: str
    """What to do, unless the finding knows better."""
    unit: str = ""
    """Of the figure and both thresholds; empty: a number, or no figure at all."""
    warning: float | None = None
    """A figure on the wrong side of this is a warning; None: no figure is."""
    failure: float | None = None
    """A figure on the wrong side of this is a failure."""
    is_least: bool = False
    """Whether figures below the thresholds are wrong; else those above."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of one place."""

    rule: Rule
    state: State
    text: str
    """What is there."""
    place: str = ""
    """A port (``mlx5_0/1``), an interface, a PCI address, a process; empty: the whole host."""
    measured: float | None = None
    """In the unit of the rule; None: the rule has no figure."""
    threshold: float | None = None
    """What the figure was compared with."""
    sources: tuple[str, ...] = ()
    """Files of the tree, commands, or measurements."""
    remedy: str = ""
    """What to do; empty where there is nothing."""

    @property
    def is_bad(self) -> bool:
        """Whether somebody has to look: a warning or a failure."""
        return self.state in (State.WARNING, State.FAILED)
