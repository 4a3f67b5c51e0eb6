# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy ping``: round trips to ``ofipy ping --serve``, with loss and contents, over one lane or over all."""

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import click
from rich.table import Table

import ofipy
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json, status_console
from ofipy.cli.tables import print_table
from ofipy.jobs.keys import configured
from ofipy.ping.lane import Lane, NoServer, Outcome
from ofipy.ping.place import Place, parse_place
from ofipy.ping.server import Server, open_server
from ofipy.ping.tally import Summary
from ofipy.ping.wire import WireError

__all__ = ["client_place", "ping_host", "serve_pings", "server_place", "wait_for_signal"]

SCHEMA = 1


@dataclass(slots=True)
class Plan:
    """The options."""

    size: int
    count: int | None
    interval: float
    wait: float
    """Seconds until a message counts as lost."""
    connect: float
    """Seconds for the hello."""


@dataclass(slots=True)
class Unused:
    """A lane that does not lead there."""

    provider: str
    reason: str
    error: Exception


@dataclass(slots=True)
class Lanes:
    """Those that lead there, and those that do not."""

    open: list[Lane] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)


def ping_host(place: Place, plan: Plan, *, provider: str | None, all_ways: bool, as_json: bool) -> None:
    """Ping until Ctrl-C, or so many times, then print a summary.

    Parameters
    ----------
    place : Place
        The server.
    plan : Plan
        How.
    provider : str, optional
        Only this one.
    all_ways : bool
        Over each provider that leads there.
    as_json : bool
        One document, and no line for each message.

    Raises
    ------
    CommandError
        When there is no server, or a message was lost or came back wrong.
    """
    names = list_providers() if all_ways else [provider]
    lanes = Lanes()
    try:
        try:
            for name in names:
                open_lane(lanes, place, name, plan)
            if not lanes.open:
                raise_first(lanes.unused)
            run_rounds(lanes.open, plan, told=not as_json)
        except KeyboardInterrupt:
            if not lanes.open:
                raise
        finish(lanes, place, plan, as_json=as_json)
    finally:
        for lane in lanes.open:
            lane.close()


def list_providers() -> list[str]:
    """Ofipy's own providers that carry messages here, without those that consist of others."""
    infos = ofipy.getinfo(ep_type="rdm", caps="tagged")
    names = dict.fromkeys(info.provider for info in infos if ":" not in info.provider)
    names.pop("link", None)
    return list(names)


def open_lane(lanes: Lanes, place: Place, provider: str | None, plan: Plan) -> None:
    """Open a lane and exchange hellos; a failure is stored with its reason."""
    try:
        lane = Lane(place, provider=provider, size=plan.size)
    except ofipy.FabricError as error:
        lanes.unused.append(Unused(provider or "-", str(error), error))
        return
    try:
        serves = lane.meet(plan.connect)
        if "ping" not in serves:
            raise NoServer(f"the server at {place} answers no pings")
    except (ofipy.FabricError, NoServer, WireError) as error:
        lanes.unused.append(Unused(lane.endpoint.provider, str(error), error))
        lane.close()
    except BaseException:
        lane.close()
        raise
    else:
        lanes.open.append(lane)


def raise_first(unused: Sequence[Unused]) -> None:
    """Raise why there is nobody to ping: what a server or the network said, before that none answered."""
    telling = [each for each in unused if not isinstance(each.error, NoServer)]
    if len(unused) == 1 and isinstance(unused[0].error, ofipy.FabricError):
        raise unused[0].error
    if len(unused) == len(telling) == 0:
        raise CommandError("no provider is available: `ofipy info` says why", code=ExitCode.NO_PROVIDER)
    said = "; ".join(dict.fromkeys(f"{each.provider}: {each.reason}" for each in unused))
    absent = any(isinstance(each.error, NoServer) for each in unused)
    if absent:
        said += ". Start one there: ofipy ping --serve"
    raise CommandError(said, code=ExitCode.NO_PROVIDER if absent else ExitCode.FAILED)


def run_rounds(lanes: Sequence[Lane], plan: Plan, *, told: bool) -> None:
    """A message over each lane, again and again."""
    begin = time.monotonic()
    rounds: Iterator[int] = itertools.count() if plan.count is None else iter(range(plan.count))
    for number in rounds:
        time.sleep(max(0.0, begin + number * plan.interval - time.monotonic()))
        for lane in lanes:
            outcome, taken = lane.ping(plan.wait)
            if told:
                click.echo(tell(lane, number + 1, outcome, taken))


def tell(lane: Lane, number: int, outcome: Outcome, taken: float) -> str:
    """A line for one message."""
    if outcome is not Outcome.ANSWERED:
        return f"{lane.name}: number={number} {outcome.value}: {lane.remark}"
    return f"{lane.size} bytes from {lane.place} over {lane.name}: number={number} time={taken * 1e6:.1f} µs"


def finish(lanes: Lanes, place: Place, plan: Plan, *, as_json: bool) -> None:
    """Print the summary.

    Raises
    ------
    CommandError
        When a message was lost or wrong, or nothing was sent.
    """
    rows = [(lane, lane.tally.summarize()) for lane in lanes.open]
    if as_json:
        print_json(describe(rows, lanes.unused, place, plan))
    else:
        show_table(rows, lanes.unused, place)
    bad = [
        f"{lane.name}: {summary.lost} lost, {summary.wrong} wrong"
        for lane, summary in rows
        if summary.sent > summary.answered
    ]
    if bad:
        reasons = {lane.remark for lane, summary in rows if summary.sent > summary.answered and lane.remark}
        raise CommandError(f"{'; '.join(bad)} ({'; '.join(sorted(reasons))})")


def describe(
    rows: Sequence[tuple[Lane, Summary]], unused: Sequence[Unused], place: Place, plan: Plan
) -> dict[str, Any]:
    """The document."""
    return {
        "schema": SCHEMA,
        "host": str(place),
        "bytes": plan.size,
        "lanes": [
            {
                "provider": lane.name,
                "address": lane.address,
                **{
                    name: round(value, 3) if isinstance(value, float) else value
                    for name, value in asdict(summary).items()
                },
                "loss_percent": round(summary.loss_percent, 3),
                "remark": lane.remark or None,
            }
            for lane, summary in rows
        ],
        "unused": [{"provider": each.provider, "reason": each.reason} for each in unused],
    }


def shorten(values: dict[str, Any]) -> dict[str, Any]:
    """The same with three digits behind the point: times to the nanosecond."""
    return {name: round(each, 3) if isinstance(each, float) else each for name, each in values.items()}


def show_table(rows: Sequence[tuple[Lane, Summary]], unused: Sequence[Unused], place: Place) -> None:
    """A row for each lane, and a line for each that does not lead there."""
    table = Table(title=f"{place}: round trips", title_justify="left")
    table.add_column("lane", no_wrap=True)
    for heading in ("sent", "answered", "loss", "late", "wrong", "µs min", "average", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for lane, summary in rows:
        times = (summary.min_usec, summary.average_usec, summary.p99_usec, summary.max_usec)
        counts = (summary.late, summary.wrong)
        table.add_row(
            lane.name,
            str(summary.sent),
            str(summary.answered),
            f"{summary.loss_percent:.3g} %",
            *map(str, counts),
            *("-" if each is None else f"{each:.1f}" for each in times),
        )
    print_table(data_console(), table)
    for each in unused:
        click.echo(f"{each.provider}: not used: {each.reason}")


def serve_pings(place: Place, *, provider: str | None) -> None:
    """Answer pings until Ctrl-C or SIGTERM, then say how many there were.

    Parameters
    ----------
    place : Place
        Where; without a host see :func:`ofipy.ping.server.open_server`.
    provider : str, optional
        Only this one.
    """
    ended = wait_for_signal()
    with Server(open_server(place, provider)) as server:
        tell_place(server, place, "ofipy ping")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve(ended.is_set)
        status_console().print(f"{server.answered} answered, {server.refused} refused")


def tell_place(server: Server, place: Place, command: str) -> None:
    """Say where a server is and who reaches it."""
    if configured() is not None:
        reach = "peers prove the key of OFIPY_AUTH_KEY_FILE"
    elif place.host:
        reach = "without a key: everybody who reaches this address is answered"
    else:
        reach = "without a key: this host only. OFIPY_AUTH_KEY_FILE or --serve ADDRESS lets others in"
    console = status_console()
    console.print(
        f"Waiting at {server.endpoint.address} ({server.endpoint.provider}); {reach}", soft_wrap=True
    )
    console.print(f"{command} HOST measures from there, Ctrl-C ends", soft_wrap=True)


def client_place(host: str) -> Place:
    """The place that a client's argument names.

    Raises
    ------
    click.UsageError
        When it names none.
    """
    place = server_place(host)
    if not place.host:
        raise click.UsageError(f"{host}: a host is missing")
    return place


def server_place(serve: str) -> Place:
    """The place that ``--serve`` names; empty: the default port.

    Raises
    ------
    click.UsageError
        When it names none.
    """
    try:
        return parse_place(serve or ":19229")
    except ofipy.InvalidArgument as error:
        raise click.UsageError(error.message) from None


def wait_for_signal() -> threading.Event:
    """An event that SIGTERM sets; Ctrl-C interrupts, as everywhere."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    return ended
