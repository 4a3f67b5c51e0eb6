# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy pingpong``: does it work here, and how fast.

The measuring code, ``ofipy.pingpong``, is that of the benchmarks too. It is imported when the command runs, so that
``import ofipy`` stays free of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.text import Text

import ofipy
from ofipy._discovery.info import configured_providers
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json, status_console
from ofipy.cli.tables import print_table
from ofipy.pingpong.local import measure_local
from ofipy.pingpong.loop import measure
from ofipy.pingpong.machine import StealClock, describe_machine
from ofipy.pingpong.pair import PairError
from ofipy.pingpong.pipe import pick_cores
from ofipy.pingpong.plan import Measurement, PingPongPlan
from ofipy.pingpong.side import Side
from ofipy.pingpong.sizes import DEFAULT_SIZES, parse_sizes, shorten_bytes

__all__ = ["run"]

SCHEMA = 1
SAMPLES = 1000


def run(
    *,
    host: str | None,
    provider: str | None,
    listen: bool,
    port: str,
    sizes: str | None,
    iterations: int | None,
    as_json: bool,
) -> None:
    """Run the command; the parameters are its options as given."""
    plan = PingPongPlan(sizes=read_sizes(sizes), iterations=iterations, samples=SAMPLES)
    if host is None and not listen:
        run_local(plan, provider=provider, as_json=as_json)
        return
    steal = StealClock()
    with Side(not listen, provider=provider, service=port if listen else None) as side:
        if host is not None:
            side.meet(f"{host}:{port}")
            side.propose(plan)
        else:
            status_console().print(f"Waiting at {side.offer()} (port {port})")
            plan = side.answer()
        rows = list(measure(side, plan))
        name = side.provider
    document = build_document(name, rows, steal=steal, cores=())
    show([document], [rows], as_json=as_json, single=True)


def run_local(plan: PingPongPlan, *, provider: str | None, as_json: bool) -> None:
    """Both sides here, over the provider chosen or over every one of ofipy's own that is available.

    Raises
    ------
    CommandError
        When there is none, or when any of them failed; the others' tables are printed first.
    """
    chosen = configured_providers(provider)
    infos = [] if chosen else ofipy.getinfo(ep_type="rdm", caps="tagged")
    # Of libfabric's many providers only those that are asked for: some take minutes on one machine.
    left_out = list(dict.fromkeys(info.provider for info in infos if ":" in info.provider))
    own = [info for info in infos if info.caps & ofipy.Cap.LOCAL_COMM and info.provider not in left_out]
    names = chosen or list(dict.fromkeys(info.provider for info in own))
    if not names:
        raise CommandError("no provider is available: `ofipy info` says why", code=ExitCode.NO_PROVIDER)
    if left_out and not as_json:
        status_console().print(
            f"Left out, since some take minutes: {', '.join(left_out)}; one runs with -p '{left_out[0]}'",
            markup=False,
            soft_wrap=True,
        )
    documents, tables, failures = [], [], []
    cores = pick_cores()
    for name in names:
        steal = StealClock()
        try:
            rows = collect(measure_local(plan, provider=name, cores=cores), name)
        except PairError as error:
            if len(names) == 1:
                raise
            failures.append(f"{name}: {error}")
            continue
        documents.append(build_document(name, rows, steal=steal, cores=cores))
        tables.append(rows)
    show(documents, tables, as_json=as_json, single=len(chosen) == 1)
    if failures:
        raise CommandError("; ".join(failures))


def read_sizes(text: str | None) -> tuple[int, ...]:
    """Sizes from the option, as a usage error where they are none."""
    if text is None:
        return DEFAULT_SIZES
    try:
        return parse_sizes(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def collect(rows: Iterable[Measurement], provider: str) -> list[Measurement]:
    """Gather rows, telling on standard error how far it is."""
    console = status_console()
    gathered = []
    # Few redraws: the thread that draws takes its time from the cores that are measured.
    with console.status(Text(f"{provider}: starting"), refresh_per_second=2) as status:
        for row in rows:
            gathered.append(row)
            status.update(Text(f"{provider}: {shorten_bytes(row.bytes)} done"))
    return gathered


def build_document(
    provider: str, rows: Sequence[Measurement], *, steal: StealClock, cores: tuple[int, ...]
) -> dict[str, Any]:
    """The document of ``--json`` for one provider."""
    return {
        "schema": SCHEMA,
        "machine": describe_machine(cores=cores, steal=steal),
        "provider": provider,
        "rows": [
            {
                "bytes": row.bytes,
                "iterations": row.iterations,
                "usec_per_transfer": round(row.usec_per_transfer, 4),
                "p50_usec": None if row.p50_usec is None else round(row.p50_usec, 4),
                "p99_usec": None if row.p99_usec is None else round(row.p99_usec, 4),
                "mb_per_sec": round(row.mb_per_sec, 3),
            }
            for row in rows
        ],
    }


def show(
    documents: Sequence[dict[str, Any]],
    tables: Sequence[Sequence[Measurement]],
    *,
    as_json: bool,
    single: bool,
) -> None:
    """Print the documents, or a table for each."""
    if as_json:
        print_json(documents[0] if single else list(documents))
        return
    console = data_console()
    for document, rows in zip(documents, tables, strict=True):
        wide, narrow = (build_table(document["provider"], rows, narrow=narrow) for narrow in (False, True))
        print_table(console, wide, narrow)


def build_table(provider: str, rows: Sequence[Measurement], *, narrow: bool) -> Any:
    """One provider's table; times are one way. A narrow one has no borders, and headings of several lines."""
    from rich.table import Table

    look: dict[str, Any] = {"box": None} if narrow else {}
    table = Table(title=f"{provider}: tagged ping-pong, one way", title_justify="left", **look)
    for heading in ("bytes", "round trips", "µs mean", "µs median", "µs p99", "MB/s"):
        table.add_column(heading.replace(" ", "\n") if narrow else heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            shorten_bytes(row.bytes),
            str(row.iterations),
            f"{row.usec_per_transfer:.2f}",
            "-" if row.p50_usec is None else f"{row.p50_usec:.2f}",
            "-" if row.p99_usec is None else f"{row.p99_usec:.2f}",
            f"{row.mb_per_sec:.1f}",
        )
    return table
