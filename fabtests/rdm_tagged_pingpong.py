# SPDX-License-Identifier: BSD-3-Clause
"""Latency of tagged messages between two processes: libfabric's program of this name over ofipy."""

import os
import shlex
import sys
from collections.abc import Iterable

import click

from fabtests.base.options import Options
from fabtests.base.output import MachineLines, TableLines
from ofipy.pingpong.local import measure_local
from ofipy.pingpong.loop import measure
from ofipy.pingpong.out_of_band import swap_addresses
from ofipy.pingpong.pair import pick_cores
from ofipy.pingpong.plan import Measurement, Plan
from ofipy.pingpong.side import Side

__all__ = ["run"]


def run(options: Options) -> None:
    """Run one side, or with ``--local`` both, and print a row for each size."""
    plan = Plan(
        sizes=options.sizes,
        iterations=options.iterations,
        warmup=options.warmup,
        verify=options.verify,
        delivery=options.delivery,
    )
    if options.local:
        show(options, measure_local(plan, provider=options.provider, cores=choose_cores(options.pin_core)))
        return
    if options.pin_core is not None:
        os.sched_setaffinity(0, {options.pin_core})
    client = options.host is not None
    service = None if client else options.source_port
    with Side(client, provider=options.provider, service=service, node=options.source_address) as side:
        if options.out_of_band is not None:
            side.meet(swap_addresses(side.offer(), host=options.host, port=options.out_of_band))
        elif client:
            side.meet(f"{options.host}:{options.destination_port}")
        if client:
            side.propose(plan)
        else:
            plan = side.answer()
        show(options, measure(side, plan))


def choose_cores(first: int | None) -> tuple[int, int]:
    """The core asked for and the one after it among those allowed."""
    if first is None:
        return pick_cores()
    allowed = sorted(os.sched_getaffinity(0))
    if first not in allowed:
        raise click.UsageError(f"core {first} is not among those this process may use: {allowed}")
    return first, allowed[(allowed.index(first) + 1) % len(allowed)]


def show(options: Options, rows: Iterable[Measurement]) -> None:
    """Print rows as they come."""
    lines: MachineLines | TableLines
    if options.machine_readable:
        lines = MachineLines(click.echo, command=shlex.join(["fabtests", *sys.argv[1:]]))
    else:
        lines = TableLines(click.echo)
    for row in rows:
        lines.add(row)
        sys.stdout.flush()
