# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests compare``: choose cases, run them, report."""

import statistics
from collections.abc import Iterable

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import ofipy
from fabtests.compare.bars import BARS
from fabtests.compare.case import Case, Line
from fabtests.compare.cases import CASES
from fabtests.compare.collectives import Collectives
from fabtests.compare.field import Field
from fabtests.compare.repeats import gather_repeats, print_repeats
from fabtests.compare.report.output import Output
from fabtests.compare.runner import Row, run_case, select_rows
from fabtests.compare.second import parse_environments
from fabtests.compare.tables import build_document, print_tables
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json, status_console
from ofipy.pingpong.machine import StealClock, describe_machine, measure_handover
from ofipy.pingpong.pipe import pick_cores

__all__ = ["run"]


ROUNDS, QUICK_ROUNDS = 15, 3


def run(
    *,
    cases: str | None,
    rounds: int | None,
    modes: str | None,
    sizes: str | None,
    ranks: int = 2,
    quick: bool,
    as_json: bool,
    output: Output,
    peer_pythons: Iterable[str] = (),
    repeat: int = 1,
) -> None:
    """Run the command; the parameters are its options as given.

    Raises
    ------
    click.UsageError
        For a case, mode or size that does not exist.
    CommandError
        When the provider or an environment that is named is not there, or something has become slower than in the
        earlier result.
    """
    plan, impossible = make_plan(cases, modes, sizes, quick=quick, ranks=ranks)
    environments = parse_environments(peer_pythons)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    steal, cores = StealClock(), pick_cores()
    runs: list[list[Row]] = []
    handovers: list[float] = []
    absent = dict(impossible)
    for number in range(1, repeat + 1):
        # New processes each time: what a pair has once begun with, it may keep.
        with Field(cores=cores, environments=environments) as field:
            rows, taken = run_plan(plan, field, rounds=rounds, run=f"run {number}: " if repeat > 1 else "")
        runs.append(rows)
        handovers += taken
        absent |= field.absent
    machine = describe_machine(cores=cores, steal=steal) | {
        "handover_usec": round(statistics.median(handovers), 4) if handovers else None,
        "rounds": rounds,
    }
    document = build_document(rows, machine=machine, absent=absent)
    repeats = gather_repeats(runs) if repeat > 1 else []
    if repeats:
        document["repeats"] = [each.document() for each in repeats]
    if as_json:
        print_json(document)
    else:
        print_tables(data_console(), rows, machine=machine, absent=absent)
        print_repeats(data_console(), repeats)
    slower = [change.name for change in output.write(document, quietly=as_json) if change.is_regression]
    if slower:
        raise CommandError(f"slower than in {output.against} beyond the noise: {', '.join(slower)}")


def make_plan(
    cases: str | None, modes: str | None, sizes: str | None, *, quick: bool, ranks: int = 2
) -> tuple[list[tuple[Case, list[list[Line]]]], dict[str, str]]:
    """What to run, and why each case that is left out is."""
    wanted_modes = split_names(
        modes, known={mode for case in CASES.values() for mode in case.modes}, what="mode"
    )
    wanted_sizes = split_names(
        sizes, known={str(size) for case in CASES.values() for size in case.sizes}, what="size"
    )
    names = split_names(cases, known=CASES, what="case") or list(CASES)
    if ranks != 2 and Collectives.name not in names:
        raise click.UsageError(f"--ranks is for the case {Collectives.name}")
    chosen = [Collectives(ranks=ranks) if name == Collectives.name else CASES[name] for name in names]
    plan = []
    for case in chosen:
        of_case = {int(size) for size in wanted_sizes} or (quick_sizes(case) if quick else set())
        if groups := select_rows(case, set(wanted_modes), of_case):
            plan.append((case, groups))
    if not plan:
        raise click.UsageError("no row of these cases has such a mode and size")
    impossible = {case.name: reason for case, _ in plan if (reason := what_lacks(case))}
    if impossible and (cases or len(impossible) == len(plan)):
        raise CommandError(
            "; ".join(f"{name}: {reason}" for name, reason in impossible.items()), code=ExitCode.NO_PROVIDER
        )
    return [(case, groups) for case, groups in plan if case.name not in impossible], impossible


def quick_sizes(case: Case) -> set[int]:
    """Those that a bar asks for; the smallest where none does."""
    return {bar.size for bar in BARS if bar.case == case.name} or {case.sizes[0]}


def run_plan(
    plan: list[tuple[Case, list[list[Line]]]], field: Field, *, rounds: int, run: str = ""
) -> tuple[list[Row], list[float]]:
    """Run the cases under a progress bar, whose descriptions begin with `run`.

    Returns
    -------
    tuple of lists
        The rows; and the handover of a cache line between the two cores before each case and at the end, µs.
    """
    rows: list[Row] = []
    handovers: list[float] = []
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
            progress.update(task, advance=1, description=run + description, refresh=True)

        def take_handover() -> None:
            if (taken := measure_handover(field.cores)) is not None:
                handovers.append(taken)

        for case, groups in plan:
            take_handover()
            rows.extend(run_case(case, groups, field, rounds=rounds, step=step))
        take_handover()
    return rows, handovers


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
