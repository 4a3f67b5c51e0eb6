# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests run`` and ``fabtests list`` on the command line."""

from pathlib import Path

import click

from fabtests.base.program import GROUPS, find, names
from fabtests.perf import kinds
from fabtests.suite.entries import SETS, entries_of
from fabtests.suite.hosts import Hosts
from fabtests.suite.junit import write_junit
from fabtests.suite.outcome import Outcome
from fabtests.suite.run import chosen, document, run_all
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json, status_console

__all__ = ["list_programs", "run_sets"]


def list_programs(sets: tuple[str, ...], *, as_json: bool) -> None:
    """Print programs, or the command lines of sets."""
    if sets:
        lines = entries_of(sets)
        if as_json:
            print_json({"version": 1, "sets": list(sets), "entries": lines})
        else:
            click.echo("\n".join(lines))
        return
    programs = names()
    if as_json:
        listed = [
            {"name": name, "group": group, "summary": find(name).summary} for name, group in programs.items()
        ]
        listed += [
            {"name": f"perf {name}", "group": "perf", "summary": kinds.find(name).summary}
            for name in kinds.names()
        ]
        print_json({"version": 1, "programs": listed, "sets": {name: len(SETS[name]) for name in SETS}})
        return
    for group in GROUPS:
        click.echo(f"{group}:")
        for name in sorted(programs):
            if programs[name] == group:
                click.echo(f"  {name:<22} {find(name).summary}")
    click.echo("perf:")
    for name in kinds.names():
        click.echo(f"  {f'perf {name}':<22} {kinds.find(name).summary}")
    click.echo("sets: " + ", ".join(f"{name} ({len(SETS[name])})" for name in SETS))


def run_sets(
    sets: tuple[str, ...],
    *,
    provider: str | None,
    hosts: Hosts,
    exclude: str | None,
    only: str | None,
    limit: float,
    jobs: int,
    strict: bool,
    as_json: bool,
    junit: Path | None,
) -> None:
    """Run sets and report; exit code 1 when something failed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    entries = chosen(entries_of(sets), exclude=exclude, only=only)
    if not entries:
        raise CommandError("no test is left to run", code=ExitCode.USAGE)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=status_console(),
        transient=True,
    )
    with bar:
        task = bar.add_task(
            f"{', '.join(sets)} over {provider or 'the default provider'}", total=len(entries)
        )

        def tell(outcome: Outcome) -> None:
            bar.advance(task)
            if outcome.result == "failed":
                bar.console.print(f"failed: {outcome.entry}: {outcome.reason}")
            elif not bar.console.is_terminal:  # a log shows no bar
                words = outcome.result.replace("_", " ")
                bar.console.print(f"{words}: {outcome.entry} ({outcome.seconds:.1f} s)")

        outcomes = run_all(entries, provider, hosts=hosts, limit=limit, jobs=jobs, tell=tell)
    if strict:
        outcomes = [_strictly(each) for each in outcomes]
    if junit is not None:
        write_junit(junit, f"fabtests.{provider or 'default'}", outcomes)
    if as_json:
        print_json(document(outcomes, provider, sets=sets))
    else:
        _table(outcomes)
    failed = sum(each.result == "failed" for each in outcomes)
    if failed:
        raise CommandError(f"{failed} of {len(outcomes)} tests failed")


def _strictly(outcome: Outcome) -> Outcome:
    """What did not run has failed."""
    if outcome.result != "not_run":
        return outcome
    return Outcome(outcome.entry, "failed", outcome.seconds, outcome.reason, outcome.output)


def _table(outcomes: list[Outcome]) -> None:
    console = data_console()
    words = {"passed": "Pass", "failed": "Fail", "not_run": "Notrun"}
    for each in outcomes:
        console.print(
            f"{each.entry:<52} {words[each.result]:<7} {each.seconds:>6.1f} s  {each.reason}".rstrip()
        )
    counts = {word: sum(words[each.result] == word for each in outcomes) for word in words.values()}
    console.print("# " + "  ".join(f"{word} {count}" for word, count in counts.items()))
