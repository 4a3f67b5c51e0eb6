# SPDX-License-Identifier: BSD-3-Clause
"""The cost of a match at a queue depth, without any transport; runs in one worker."""

from importlib.metadata import version

import ofipy

__all__ = ["Matcher"]

ITERATIONS = 20000


class Matcher:
    """Times the core's matcher."""

    def __init__(self, first: bool) -> None:
        self._first = first

    def version(self) -> str:
        """Of ofipy."""
        return version("ofipy")

    def match(self, mode: str, depth: int) -> float:
        """Nanoseconds of one match with `depth` entries queued, the one posted last matched first.

        Every entry takes part: after twice as many matches as there are entries none is unused.
        """
        return ofipy.measure.match(mode, depth, iterations=max(ITERATIONS, 2 * depth))

    def close(self) -> None:
        """Nothing is held."""
