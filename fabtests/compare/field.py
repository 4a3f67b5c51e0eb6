# SPDX-License-Identifier: BSD-3-Clause
"""Who runs: ofipy and the peers that are installed, each started when a case first needs it."""

import contextlib
from types import TracebackType
from typing import Any, Self

from fabtests.compare.entrants import LIBFABRIC, MATCHER, OFIPY, Absent, Entrant, recipe_of
from fabtests.compare.libfabric import Programs
from ofipy.pingpong.pair import Pair, PairError

__all__ = ["Field"]


class Field:
    """Start contenders and keep them until the end.

    Parameters
    ----------
    cores : tuple of int
        The core of each side.
    """

    def __init__(self, *, cores: tuple[int, int]) -> None:
        self.cores = cores
        self.absent: dict[str, str] = {}
        """Why someone does not take part, by the text of the entrant."""
        self.versions: dict[Entrant, str] = {}
        self._pairs: dict[Entrant, Pair | Programs] = {}

    def has(self, entrant: Entrant) -> bool:
        """Whether this contender can run; asked the first time, it is started."""
        if entrant not in self.versions and str(entrant) not in self.absent:
            try:
                self._enter(entrant)
            except Absent as why:
                self.absent[str(entrant)] = why.reason
        return entrant in self.versions

    def drop(self, entrant: Entrant, reason: str) -> None:
        """Take a peer out of the run."""
        self.versions.pop(entrant, None)
        if (pair := self._pairs.pop(entrant, None)) is not None:
            pair.kill()
        self.absent[str(entrant)] = reason

    def pair(self, entrant: Entrant) -> Pair | Programs:
        """The worker processes of a contender that is there."""
        return self._pairs[entrant]

    def _enter(self, entrant: Entrant) -> None:
        pair: Pair | Programs
        if entrant.name == MATCHER:
            pair = Pair("fabtests.compare.matcher:Matcher", cores=self.cores, count=1)
        else:
            try:
                pair = self._start(entrant)
            except Absent as why:
                if entrant.name != LIBFABRIC:
                    raise
                pair = Programs.found(entrant.over, cores=self.cores, otherwise=why.reason)
        self._pairs[entrant] = pair
        self.versions[entrant] = pair.call("version")[0]

    def _start(self, entrant: Entrant) -> Pair:
        """Start both sides and let them meet."""
        recipe = recipe_of(entrant)
        launcher = recipe.launcher()
        try:
            pair = Pair(
                "fabtests.compare.bench:Bench",
                cores=self.cores,
                launcher=launcher,
                environment=recipe.environment,
                contender=recipe.contender,
                **recipe.options,
            )
            # One offer at a time: the second side may need what the first has set up.
            offers: list[Any] = pair.call("offer")
            pair.call_each("meet", [(offers[1],), (offers[0],)])
        except PairError as error:
            if entrant.name == OFIPY:
                raise
            raise Absent(f"does not start: {error.kind}: {error}") from error
        return pair

    def close(self) -> None:
        """End all workers."""
        with contextlib.ExitStack() as stack:
            for pair in self._pairs.values():
                stack.callback(pair.close)
        self._pairs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        for pair in self._pairs.values():
            pair.kill()
