# SPDX-License-Identifier: BSD-3-Clause
"""What an examination of this host's settings has found."""

from dataclasses import dataclass

__all__ = ["Judgement"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found out about one thing."""

    state: str
    """``ok``, ``warning`` or ``failed``."""
    finding: str
    remedy: str = ""
