# SPDX-License-Identifier: BSD-3-Clause
"""Runs rounds in turn and sums them up into rows."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fabtests.compare.bars import Bar, find_bars
from fabtests.compare.case import Case, Cell, Line, Round
from fabtests.compare.entrants import ALONE, OFIPY, Absent
from fabtests.compare.field import Field
from fabtests.compare.programs import ProgramError
from fabtests.compare.statistics import Summary, judge, ratio, summarize
from ofipy.pingpong.pair import PairError

__all__ = ["Best", "PeerResult", "Row", "run_case", "select_rows"]

OWN = (OFIPY, *ALONE)


@dataclass(frozen=True, slots=True)
class PeerResult:
    """A peer beside one row."""

    summary: Summary
    ratio: float | None
    """ofipy / peer; None when a spread forbids it."""
    note: str | None
    """Why there is no ratio."""
    version: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        note = {} if self.note is None else {"note": self.note}
        return {
            **self.summary.document(),
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "version": self.version,
            **note,
            **self.facts,
        }


@dataclass(frozen=True, slots=True)
class Best:
    """The peer with the best value of a row, and how ofipy stands to it."""

    peer: str
    ratio: float | None
    """As of :class:`PeerResult`."""
    verdict: str | None
    """``ahead``, ``even`` or ``behind``; None without a ratio."""

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        quotient = None if self.ratio is None else round(self.ratio, 4)
        return {"peer": self.peer, "ratio": quotient, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result."""

    case: Case
    line: Line
    own: Summary
    peers: dict[str, PeerResult]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further keys."""

    def best(self) -> Best | None:
        """The best of all peers; None when there is none."""
        name = self.best_of(self.peers)
        if name is None:
            return None
        quotient = self.peers[name].ratio
        higher = self.case.higher_is_better(self.line.mode)
        verdict = None if quotient is None else judge(quotient, higher_is_better=higher)
        return Best(name, quotient, verdict)

    def best_of(self, names: Iterable[str]) -> str | None:
        """The peer with the best value among those of these names that took part."""
        there = [name for name in names if name in self.peers]
        choose = max if self.case.higher_is_better(self.line.mode) else min
        return choose(there, key=lambda name: self.peers[name].summary.value, default=None)

    def peer_of(self, bar: Bar) -> str | None:
        """The peer that a bar is judged against; None when it is not there, or the bar is for a key of the row."""
        return self.best_of(bar.among or (bar.peer,))

    def bars(self) -> list[tuple[Bar, bool | None]]:
        """The bars of this row, and whether each is met; None when the peer or the ratio is missing."""
        judged: list[tuple[Bar, bool | None]] = []
        # The bars are those of two processes with a core each.
        if self.facts.get("ranks", 2) > 2:
            return judged
        for bar in find_bars(self.case.name, self.line):
            peer = self.peer_of(bar)
            value = self.facts.get(bar.key) if peer is None else self.peers[peer].ratio
            judged.append((bar, None if value is None else bar.met(value)))
        return judged

    def identity(self) -> dict[str, Any]:
        """What the row is about, as it stands in the JSON document."""
        way = {"way": self.line.way} if self.line.way else {}
        return {
            "case": self.case.name,
            "provider": self.case.provider_of(self.line),
            "mode": self.line.mode,
            **way,
            self.case.size_key: self.line.size,
            "metric": self.case.metric_of(self.line.mode),
        }

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        best = self.best()
        return {
            **self.identity(),
            **self.facts,
            "ofipy": self.own.document(),
            "peers": {name: peer.document() for name, peer in self.peers.items()},
            "best": None if best is None else best.document(),
            "bars": [self._document_of(bar, met) for bar, met in self.bars()],
        }

    def _document_of(self, bar: Bar, met: bool | None) -> dict[str, Any]:
        peer = self.peer_of(bar) if bar.among else bar.peer or None
        return {
            "peer": peer,
            "limit": bar.limit,
            "at_least": bar.at_least,
            "met": met,
            **({"key": bar.key} if bar.key else {}),
            **({"among": list(bar.among)} if bar.among else {}),
        }


def select_rows(case: Case, modes: Set[str], sizes: Set[int]) -> list[list[Line]]:
    """The groups of a case, without rows of other modes or sizes where the user named some."""
    groups = [
        [line for line in group if (not modes or line.mode in modes) and (not sizes or line.size in sizes)]
        for group in case.groups()
    ]
    return [group for group in groups if group]


def run_case(
    case: Case, groups: list[list[Line]], field: Field, *, rounds: int, step: Callable[[str], None]
) -> Iterator[Row]:
    """Measure a case.

    Parameters
    ----------
    case : Case
        What to measure.
    groups : list
        Its rows, from :func:`select_rows`.
    field : Field
        Who takes part.
    rounds : int
        Rounds of each cell.
    step : callable
        Called with a description before each round, `rounds` times a group.

    Raises
    ------
    ofipy.pingpong.pair.PairError
        When ofipy's own workers fail; a peer that fails becomes absent.
    """
    for group in groups:
        results = run_group(case, group, field, rounds=rounds, step=step)
        for line in group:
            yield build_row(case, line, field, results)


def run_group(
    case: Case, group: list[Line], field: Field, *, rounds: int, step: Callable[[str], None]
) -> dict[Cell, list[Round]]:
    """All rounds of one group; every round begins with another cell, so that none is always first."""
    counts: dict[Cell, int] = {}
    for cell in cells_of(case, group):
        if field.has(cell.entrant):
            with guarded(field, cell):
                counts[cell] = case.calibrate(field, cell)
    results: dict[Cell, list[Round]] = {cell: [] for cell in counts}
    order = list(counts)
    for number in range(rounds):
        step(f"{case.name} {group[0].mode if case.size_key == 'depth' else group[0].size}")
        first = number % max(1, len(order))
        for cell in order[first:] + order[:first]:
            if field.has(cell.entrant):
                with guarded(field, cell):
                    results[cell].append(case.run(field, cell, counts[cell]))
    return results


def cells_of(case: Case, group: list[Line]) -> list[Cell]:
    """What a group measures, each cell once."""
    cells: dict[Cell, None] = {}
    for line in group:
        cells[case.own_cell(line)] = None
        cells.update(dict.fromkeys(case.peer_cells(line).values()))
    return list(cells)


@contextlib.contextmanager
def guarded(field: Field, cell: Cell) -> Iterator[None]:
    """Surround work of one cell: a peer that fails in it leaves the run, ofipy's failure ends the run.

    A cell that a peer has no way to do is left out, and the peer goes on.
    """
    try:
        yield
    except Absent:
        return
    except (PairError, ProgramError) as error:
        if cell.entrant.name in OWN:
            raise
        field.drop(cell.entrant, f"failed at {cell.size} bytes: {error}")


def build_row(case: Case, line: Line, field: Field, results: dict[Cell, list[Round]]) -> Row:
    """Sum up one row."""

    def sum_up(cell: Cell) -> Summary:
        rounds = results[cell]
        samples = np.concatenate([each.samples for each in rounds])
        return summarize(
            [each.value for each in rounds], samples, higher_is_better=case.higher_is_better(line.mode)
        )

    own_cell = case.own_cell(line)
    own = case.sum_up_own(results[own_cell], sum_up(own_cell))
    peers: dict[str, PeerResult] = {}
    for name, cell in case.peer_cells(line).items():
        if not field.has(cell.entrant) or not results.get(cell):
            continue
        summary = sum_up(cell)
        quotient, note = ratio(own, summary)
        facts = case.sum_up_facts(results[cell])
        peers[name] = PeerResult(summary, quotient, note, field.versions[cell.entrant], facts)
    return Row(case, line, own, peers, case.sum_up_facts(results[own_cell]))
