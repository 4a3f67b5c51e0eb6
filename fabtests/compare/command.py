# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests compare``: choose cases, run them, report."""

from collections.abc import Iterable

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import ofipy
from fabtests.compare.case import Case
from fabtests.compare.cases import CASES
from fabtests.compare.field import Field
from fabtests.compare.report import build_document, print_tables
from fabtests.compare.runner import Row, run_case, select_rows
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json, status_console
from ofipy.pingpong.machine import StealClock, describe_machine
from ofipy.pingpong.pair import pick_cores

__all__ = ["run"]


def run(*, cases: str | None, rounds: int, modes: str | None, sizes: str | None, as_json: bool) -> None:
    """Run the command; the parameters are its options as given.

    Raises
    ------
    click.UsageError
        For a case, mode or size that does not exist.
    CommandError
        When the provider is not there.
    """
    wanted_modes = split_names(
        modes, known={mode for case in CASES.values() for mode in case.modes}, what="mode"
    )
    wanted_sizes = split_names(
        sizes, known={str(size) for case in CASES.values() for size in case.sizes}, what="size"
    )
    chosen = [CASES[name] for name in split_names(cases, known=CASES, what="case") or CASES]
    plan = [
        (case, select_rows(case, set(wanted_modes), {int(size) for size in wanted_sizes})) for case in chosen
    ]
    plan = [(case, groups) for case, groups in plan if groups]
    if not plan:
        raise click.UsageError("no row of these cases has such a mode and size")
    impossible = {case.name: reason for case, _ in plan if (reason := what_lacks(case))}
    if impossible and (cases or len(impossible) == len(plan)):
        raise CommandError(
            "; ".join(f"{name}: {reason}" for name, reason in impossible.items()), code=ExitCode.NO_PROVIDER
        )
    plan = [(case, groups) for case, groups in plan if case.name not in impossible]

    steal, cores = StealClock(), pick_cores()
    with Field(cores=cores) as field:
        rows = run_plan(plan, field, rounds=rounds)
        absent = field.absent | impossible
    machine = describe_machine(cores=cores, steal=steal) | {"rounds": rounds}
    if as_json:
        print_json(build_document(rows, machine=machine, absent=absent))
    else:
        print_tables(data_console(), rows, machine=machine, absent=absent)


def run_plan(plan: list[tuple[Case, list[list[tuple[str, int]]]]], field: Field, *, rounds: int) -> list[Row]:
    """Run the cases under a progress bar."""
    rows: list[Row] = []
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=status_console(), transient=True, auto_refresh=False) as progress:
        task = progress.add_task("starting", total=rounds * sum(len(groups) for _, groups in plan))

        def step(description: str) -> None:
            # Drawn between rounds only: a drawing thread would take turns on the cores that are measured.
            progress.update(task, advance=1, description=description, refresh=True)

        for case, groups in plan:
            rows.extend(run_case(case, groups, field, rounds=rounds, step=step))
    return rows


def what_lacks(case: Case) -> str | None:
    """Why its provider cannot run a case; None when it can."""
    if not case.needs_provider:
        return None
    try:
        report = ofipy.getinfo(provider=case.provider, caps=case.caps, explain=True)
    except ofipy.ProviderUnavailable as error:
        return str(error.message)
    (own,) = (each for each in report if each.provider == case.provider)
    return None if own.infos else f"provider {case.provider}: {own.reason}"


def split_names(text: str | None, *, known: Iterable[str], what: str) -> list[str]:
    """Split a list of names and check each."""
    names = [name.strip() for name in text.split(",")] if text else []
    known = list(known)
    for name in names:
        if name not in known:
            raise click.UsageError(f"unknown {what} {name!r}: there are {', '.join(sorted(known))}")
    return names
