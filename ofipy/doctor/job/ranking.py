# SPDX-License-Identifier: BSD-3-Clause
"""The hosts of a job, slowest first, and rules on what their pairs measured."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ofipy.doctor.finding import Finding, State
from ofipy.doctor.job.pairs import Pair
from ofipy.doctor.rules import find

__all__ = ["Standing", "examine_pairs", "rank_hosts"]


@dataclass(frozen=True, slots=True)
class Standing:
    """One host among the others; or one process, if there is one host."""

    name: str
    pairs: int
    failed: int
    """Pairs without a result."""
    slowness: float | None
    """How many times the usual time it needs, for round trips or bytes, whichever is worse; None: no result."""
    round_trip_usec: float | None
    """With the partner with which it is fastest."""
    mb_per_sec: float | None


def rank_hosts(pairs: Sequence[Pair], hosts: Sequence[str]) -> list[Standing]:
    """Compare what each host reaches with its best partner with what the hosts in the middle reach.

    Parameters
    ----------
    pairs : sequence of Pair
        Of all processes.
    hosts : sequence of str
        Name of the host of each rank.

    Returns
    -------
    list of Standing
        The slowest first; one without results before it.
    """
    several = len(set(hosts)) > 1
    names = list(dict.fromkeys(hosts)) if several else [f"rank {rank}" for rank in range(len(hosts))]
    bests = {name: find_best(name, pairs, hosts, several) for name in names}
    usual_trip = _median([trip for trip, _ in bests.values()])
    usual_rate = _median([rate for _, rate in bests.values()])
    found = []
    for name, (trip, rate) in bests.items():
        mine = [each for each in pairs if name in set(_names(each, hosts, several))]
        mine = [each for each in mine if len(set(_names(each, hosts, several))) == 2]
        slower = [trip / usual_trip] if trip and usual_trip else []
        slower += [usual_rate / rate] if rate and usual_rate else []
        found.append(
            Standing(
                name,
                len(mine),
                sum(bool(each.error) for each in mine),
                max(slower, default=None),
                None if trip is None else trip * 1e6,
                None if rate is None else rate / 1e6,
            )
        )
    return sorted(
        found,
        key=lambda each: (-each.failed, -(each.slowness if each.slowness is not None else float("inf"))),
    )


def find_best(
    name: str, pairs: Sequence[Pair], hosts: Sequence[str], several: bool
) -> tuple[float | None, float | None]:
    """Round trip and rate of a host with the partner with which it is fastest.

    A pair is as slow as the slower of both. So a host that is well has a partner with which it is fast, and a slow one
    has none.
    """
    by_partner: dict[str, list[Pair]] = {}
    for each in pairs:
        both = _names(each, hosts, several)
        if name in both and both[0] != both[1] and not each.error:
            by_partner.setdefault(both[both[0] == name], []).append(each)
    trips = [_median([each.round_trip for each in some]) for some in by_partner.values()]
    rates = [_median([_rate(each) for each in some]) for some in by_partner.values()]
    return (
        min((each for each in trips if each), default=None),
        max((each for each in rates if each), default=None),
    )


def _names(pair: Pair, hosts: Sequence[str], several: bool) -> tuple[str, str]:
    if several:
        return hosts[pair.rank], hosts[pair.partner]
    return f"rank {pair.rank}", f"rank {pair.partner}"


def _rate(pair: Pair) -> float | None:
    """Of the slower direction."""
    rates = [each for each in (pair.sent, pair.received) if each]
    return min(rates) if rates else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each]
    return statistics.median(known) if known else None


def examine_pairs(pairs: Sequence[Pair], hosts: Sequence[str], missing: Sequence[int]) -> Iterator[Finding]:
    """Pairs that have no result, unless one of both is named already, and those that take the slower network."""
    for pair in pairs:
        place = f"rank {pair.rank} ({hosts[pair.rank]}) to rank {pair.partner} ({hosts[pair.partner]})"
        sources = ("measured between both processes",)
        if pair.error and pair.rank not in missing and pair.partner not in missing:
            yield find("net.port", State.FAILED, pair.error, place=place, sources=sources)
        elif pair.way == "tcp" and pair.both_have_verbs and pair.rank < pair.partner:
            text = "messages go over tcp, though both have verbs"
            yield find("app.way", State.WARNING, text, place=place, sources=sources)
