# SPDX-License-Identifier: BSD-3-Clause
"""What the counters of processes come from, for those who only ask for them."""

from typing import Protocol

from ofipy.statistics.records import Snapshot

__all__ = ["Scanner"]


class Scanner(Protocol):
    """A reader of statistics pages, or what stands for one in a test."""

    def scan(self) -> Snapshot:
        """Read every page that there is."""
        ...
