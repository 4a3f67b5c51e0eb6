# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --job``: the hosts and processes of a job, under any launcher."""

import os
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

import ofipy
from ofipy.cli.doctor import report
from ofipy.cli.support import data_console
from ofipy.cli.tables import print_table
from ofipy.doctor.job.ranking import Standing
from ofipy.doctor.job.run import JobDoctor
from ofipy.doctor.rules import RULES
from ofipy.host.tree import Tree

__all__ = ["examine_job"]

_LINGER = "1"  # seconds


def examine_job(*, provider: str | None, as_json: bool, is_strict: bool) -> None:
    """Measure in the job that this process was started in. Rank 0 prints what all have found.

    Parameters
    ----------
    provider : str, optional
        Only this one.
    as_json : bool
        One document in place of tables.
    is_strict : bool
        Whether a warning is a failure, too.

    Raises
    ------
    CommandError
        In rank 0, after printing, when a rule has failed.
    """
    # Results are waited for. What has not left then are goodbyes to members that are stopped.
    os.environ.setdefault("OFIPY_LINGER", _LINGER)
    with ofipy.job() as job:
        doctor = JobDoctor(job, Tree(), provider)
        try:
            known = doctor.run()
        finally:
            doctor.close()
        if known is None:
            return
        if not as_json:
            show_standings(known.standings)
        order = {rule: number for number, rule in enumerate(RULES)}
        report(
            sorted(known.findings, key=lambda each: order.get(each.rule.id, len(order))),
            as_json=as_json,
            is_strict=is_strict,
            launcher=job.launcher,
            hosts=[asdict(each) for each in known.standings],
            pairs=[each.as_dict() for each in known.pairs],
        )


def show_standings(standings: Sequence[Standing]) -> None:
    """A row for each host, the slowest first."""
    table = Table(title="hosts, slowest first", title_justify="left")
    table.add_column("host", no_wrap=True)
    for heading in ("pairs", "failed", "× the usual time", "µs there and back", "MB/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in standings:
        figures = ((each.slowness, ".2f"), (each.round_trip_usec, ".1f"), (each.mb_per_sec, ".0f"))
        table.add_row(
            each.name,
            str(each.pairs),
            str(each.failed),
            *("-" if value is None else format(value, digits) for value, digits in figures),
        )
    print_table(data_console(), table)
