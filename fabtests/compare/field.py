# SPDX-License-Identifier: BSD-3-Clause
"""Who runs: ofipy and the peers that are installed, each started when a case first needs it."""

import contextlib
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import ofipy
from fabtests.compare.copier import pick_core
from fabtests.compare.entrants import (
    ALONE,
    COPIER,
    LIBFABRIC,
    OFIPY,
    PERFTEST,
    UCX,
    Absent,
    Entrant,
    recipe_of,
)
from fabtests.compare.libfabric import Programs
from fabtests.compare.perftest import Perftest
from fabtests.compare.second import SecondEnvironment
from fabtests.compare.ucx import Ucx
from ofipy.pingpong.pair import Pair, PairError

__all__ = ["Field"]

Worked = Pair | Programs | Perftest | Ucx
PROGRAMS = {"shm", "tcp"}  # what libfabric's programs take the place of the bridge for


class Field:
    """Start contenders and keep them until the end.

    Parameters
    ----------
    cores : tuple of int
        The core of each side.
    environments : mapping of str to SecondEnvironment, optional
        Those of peers that have one of their own.
    """

    def __init__(
        self, *, cores: tuple[int, int], environments: Mapping[str, SecondEnvironment] | None = None
    ) -> None:
        self.cores = cores
        self._environments = dict(environments or {})
        self.absent: dict[str, str] = {}
        """Why someone does not take part, by the text of the entrant."""
        self.versions: dict[Entrant, str] = {}
        self._pairs: dict[Entrant, Worked] = {}

    def has(self, entrant: Entrant) -> bool:
        """Whether this contender can run; asked the first time, it is started."""
        if entrant not in self.versions and str(entrant) not in self.absent:
            try:
                self._enter(entrant)
            except Absent as why:
                self.absent[str(entrant)] = why.reason
        return entrant in self.versions

    def renew(self, entrant: Entrant) -> None:
        """Start a contender that is there anew."""
        self._pairs.pop(entrant).close()
        self._enter(entrant)

    def drop(self, entrant: Entrant, reason: str) -> None:
        """Take a peer out of the run."""
        self.versions.pop(entrant, None)
        if (pair := self._pairs.pop(entrant, None)) is not None:
            pair.kill()
        self.absent[str(entrant)] = reason

    def pair(self, entrant: Entrant) -> Worked:
        """The worker processes of a contender that is there."""
        return self._pairs[entrant]

    def _enter(self, entrant: Entrant) -> None:
        pair: Worked
        if entrant.name in ALONE:
            options: dict[str, Any] = (
                {"provider": entrant.over, "allowed": self.cores} if entrant.over else {}
            )
            cores = (pick_core(self.cores),) * 2 if entrant.name == COPIER else self.cores
            pair = Pair(ALONE[entrant.name], cores=cores, count=1, **options)
        elif entrant == PERFTEST:
            device = ofipy.getinfo(provider=entrant.over, ep_type="msg")[0].domain
            pair = Perftest.found(device, cores=self.cores)
        elif entrant == UCX:
            pair = Ucx.found(cores=self.cores)
        else:
            try:
                pair = self._start(entrant)
            except Absent as why:
                if entrant.name != LIBFABRIC or entrant.over not in PROGRAMS:
                    raise
                pair = Programs.found(entrant.over, cores=self.cores, otherwise=why.reason)
        self._pairs[entrant] = pair
        self.versions[entrant] = pair.call("version")[0]

    def _start(self, entrant: Entrant) -> Pair:
        """Start both sides and let them meet."""
        recipe = recipe_of(entrant)
        launcher, python = recipe.launcher(), sys.executable
        if recipe.second:
            environment = self._environments.get(recipe.second)
            if environment is None:
                raise Absent(f"needs an environment of its own: --peer-python {recipe.second}=PATH")
            launcher, python = environment.launcher(recipe.count), environment.python
        try:
            named = {"contender": recipe.contender} if recipe.target else {}
            pair = Pair(
                recipe.target or recipe.contender,
                cores=self.cores,
                launcher=launcher,
                environment=recipe.environment,
                python=python,
                count=recipe.count,
                **named,
                **recipe.options,
            )
            # One offer at a time: the second side may need what the first has set up.
            offers: list[Any] = pair.call("offer")
            if recipe.are_members:
                pair.call_each("meet", [(offers, rank) for rank in range(recipe.count)])
            else:
                pair.call_each("meet", [(offers[1],), *[(offers[0],)] * (recipe.count - 1)])
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
