# SPDX-License-Identifier: BSD-3-Clause
"""Runs rounds in turn and sums them up into rows."""

import contextlib
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from fabtests.compare.bars import Bar, find_bars
from fabtests.compare.case import Case, Cell, Round
from fabtests.compare.entrants import MATCHER, OFIPY, Absent
from fabtests.compare.field import Field
from fabtests.compare.libfabric import LibfabricError
from fabtests.compare.statistics import Summary, ratio, summarize
from ofipy.pingpong.pair import PairError

__all__ = ["PeerResult", "Row", "run_case", "select_rows"]

OWN = (OFIPY, MATCHER)


@dataclass(frozen=True, slots=True)
class PeerResult:
    """A peer beside one row."""

    summary: Summary
    ratio: float | None
    """ofipy / peer; None when a spread forbids it."""
    note: str | None
    """Why there is no ratio."""
    version: str

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        note = {} if self.note is None else {"note": self.note}
        return {
            **self.summary.document(),
            "ratio": None if self.ratio is None else round(self.ratio, 4),
            "version": self.version,
            **note,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result."""

    case: Case
    mode: str
    size: int
    own: Summary
    peers: dict[str, PeerResult]

    def bars(self) -> list[tuple[Bar, bool | None]]:
        """The bars of this row, and whether each is met; None when the peer or the ratio is missing."""
        judged: list[tuple[Bar, bool | None]] = []
        for bar in find_bars(self.case.name, self.mode, self.size):
            quotient = self.peers[bar.peer].ratio if bar.peer in self.peers else None
            judged.append((bar, None if quotient is None else bar.met(quotient)))
        return judged

    def document(self) -> dict[str, Any]:
        """As it stands in the JSON document."""
        return {
            "case": self.case.name,
            "provider": self.case.provider,
            "mode": self.mode,
            self.case.size_key: self.size,
            "metric": self.case.metric_of(self.mode),
            "ofipy": self.own.document(),
            "peers": {name: peer.document() for name, peer in self.peers.items()},
            "bars": [
                {"peer": bar.peer, "limit": bar.limit, "at_least": bar.at_least, "met": met}
                for bar, met in self.bars()
            ],
        }


def select_rows(case: Case, modes: Set[str], sizes: Set[int]) -> list[list[tuple[str, int]]]:
    """The groups of a case, without rows of other modes or sizes where the user named some."""
    groups = [
        [
            (mode, size)
            for mode, size in group
            if (not modes or mode in modes) and (not sizes or size in sizes)
        ]
        for group in case.groups()
    ]
    return [group for group in groups if group]


def run_case(
    case: Case, groups: list[list[tuple[str, int]]], field: Field, *, rounds: int, step: Callable[[str], None]
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
        for mode, size in group:
            yield build_row(case, mode, size, field, results)


def run_group(
    case: Case, group: list[tuple[str, int]], field: Field, *, rounds: int, step: Callable[[str], None]
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
        step(f"{case.name} {group[0][0] if case.size_key == 'depth' else group[0][1]}")
        first = number % max(1, len(order))
        for cell in order[first:] + order[:first]:
            if field.has(cell.entrant):
                with guarded(field, cell):
                    results[cell].append(case.run(field, cell, counts[cell]))
    return results


def cells_of(case: Case, group: list[tuple[str, int]]) -> list[Cell]:
    """What a group measures, each cell once."""
    cells: dict[Cell, None] = {}
    for mode, size in group:
        cells[case.own_cell(mode, size)] = None
        cells.update(dict.fromkeys(case.peer_cells(mode, size).values()))
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
    except (PairError, LibfabricError) as error:
        if cell.entrant.name in OWN:
            raise
        field.drop(cell.entrant, f"failed at {cell.size} bytes: {error}")


def build_row(case: Case, mode: str, size: int, field: Field, results: dict[Cell, list[Round]]) -> Row:
    """Sum up one row."""

    def sum_up(cell: Cell) -> Summary:
        rounds = results[cell]
        samples = np.concatenate([each.samples for each in rounds])
        return summarize(
            [each.value for each in rounds], samples, higher_is_better=case.higher_is_better(mode)
        )

    own = sum_up(case.own_cell(mode, size))
    peers: dict[str, PeerResult] = {}
    for name, cell in case.peer_cells(mode, size).items():
        if not field.has(cell.entrant) or not results.get(cell):
            continue
        summary = sum_up(cell)
        quotient, note = ratio(own, summary)
        peers[name] = PeerResult(summary, quotient, note, field.versions[cell.entrant])
    return Row(case, mode, size, own, peers)
