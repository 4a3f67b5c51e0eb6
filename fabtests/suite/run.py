# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests run``: a set of tests over one provider."""

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from fabtests.suite.hosts import Hosts
from fabtests.suite.outcome import Outcome
from fabtests.suite.pair import Running, run_entry

__all__ = ["chosen", "document", "run_all"]


def chosen(entries: Iterable[str], *, exclude: str | None, only: str | None) -> list[str]:
    """Entries that match `only`, without those that match `exclude`."""
    return [
        entry
        for entry in entries
        if (only is None or re.search(only, entry))
        and not (exclude is not None and re.search(exclude, entry))
    ]


def run_all(
    entries: list[str],
    provider: str | None,
    *,
    hosts: Hosts,
    limit: float,
    jobs: int,
    tell: Callable[[Outcome], None],
) -> list[Outcome]:
    """Run them, several at once; outcomes in the order of the entries."""
    found: dict[str, Outcome] = {}
    running = Running()
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(run_entry, each, provider, hosts=hosts, limit=limit, running=running)
            for each in entries
        ]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                found[outcome.entry] = outcome
                tell(outcome)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.stop()
            raise
    return [found[entry] for entry in entries]


def document(outcomes: list[Outcome], provider: str | None, *, sets: tuple[str, ...]) -> dict[str, Any]:
    """The JSON document of a run."""
    from ofipy import __version__
    from ofipy.pingpong.machine import describe_machine

    def count(result: str) -> int:
        return sum(each.result == result for each in outcomes)

    return {
        "version": 1,
        "provider": provider,
        "sets": list(sets),
        "ofipy": __version__,
        "passed": count("passed"),
        "failed": count("failed"),
        "not_run": count("not_run"),
        "entries": list(_dicts(outcomes)),
        "machine": describe_machine(),
    }


def _dicts(outcomes: list[Outcome]) -> Iterator[dict[str, Any]]:
    for each in outcomes:
        yield each.as_dict()
