# SPDX-License-Identifier: BSD-3-Clause
"""The fuzzer's steps, as they travel to the process that takes them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ref:
    """An object of the world, by name."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Step:
    """A call of one of the world's verbs."""

    verb: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    """What the result is called; empty: it is dropped."""
    after: float | None = None
    """Seconds until it is interrupted; None: when it seems to wait for ever."""

    def __repr__(self) -> str:
        said = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.options.items())]
        interrupted = "" if self.after is None else f"  # interrupted after {self.after * 1e6:.0f} µs"
        return f"{self.name + ' = ' if self.name else ''}{self.verb}({', '.join(said)}){interrupted}"
