# SPDX-License-Identifier: BSD-3-Clause
"""How one test went."""

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["NOT_RUN", "Outcome", "Result"]

Result = Literal["passed", "failed", "not_run"]

NOT_RUN = (61, 38)
"""Exit codes ENODATA and ENOSYS: something is missing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the suite."""

    entry: str
    """Its command line."""
    result: Result
    """What came of it."""
    seconds: float
    """How long it took."""
    reason: str = ""
    """Why it failed, or what is missing."""
    output: str = ""
    """What both sides printed, where it failed."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        fields: dict[str, Any] = {
            "name": self.entry,
            "result": self.result,
            "seconds": round(self.seconds, 3),
        }
        if self.reason:
            fields["reason"] = self.reason
        if self.output:
            fields["output"] = self.output
        return fields
