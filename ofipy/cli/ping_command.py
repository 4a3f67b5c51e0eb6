# SPDX-License-Identifier: BSD-3-Clause
"""The options of ``ofipy ping``."""

import rich_click as click

from ofipy.cli.support import JSON, Seconds, interval

__all__ = ["ping"]


@click.command()
@click.argument("host", metavar="[HOST[:PORT]]", required=False)
@click.option(
    "--serve",
    is_flag=False,
    flag_value="",
    metavar="[ADDRESS:PORT]",
    help="Answer pings, at port 19229 if you name none. Without ADDRESS and without a key: those of this host.",
)
@click.option(
    "-c",
    "--count",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="So many messages; default: until Ctrl-C.",
)
@interval("Time from one message to the next; 0: at once.", "-i", values=click.FloatRange(0, 1e6))
@click.option(
    "-s",
    "--size",
    type=click.IntRange(0, 1 << 20),
    metavar="BYTES",
    default=56,
    show_default=True,
    help="Payload of a message.",
)
@click.option("-p", "--provider", metavar="NAME", help="Only this provider; default: what open() takes.")
@click.option("--all-ways", is_flag=True, help="Over each provider that leads there.")
@click.option(
    "-W",
    "--wait",
    type=Seconds(),
    metavar="SECONDS",
    default=1,
    show_default=True,
    help="A message without an answer after this time is lost.",
)
@click.option(
    "--connect",
    type=Seconds(),
    metavar="SECONDS",
    default=5,
    show_default=True,
    help="Time in which the server has to answer for the first time.",
)
@JSON
def ping(
    host: str | None,
    serve: str | None,
    count: int | None,
    interval: float,
    size: int,
    provider: str | None,
    all_ways: bool,
    wait: float,
    connect: float,
    as_json: bool,
) -> None:
    """Measure round trips to `ofipy ping --serve` on HOST: times, loss, and whether contents come back unchanged."""
    from ofipy.cli import ping as module

    if (host is None) == (serve is None):
        raise click.UsageError("give a HOST to ping, or --serve to answer: one of them")
    if all_ways and provider is not None:
        raise click.UsageError("--all-ways is for every provider: give no --provider with it")
    if serve is not None:
        module.serve_pings(module.server_place(serve), provider=provider)
        return
    assert host is not None
    plan = module.Plan(size=size, count=count, interval=interval, wait=wait, connect=connect)
    module.ping_host(module.client_place(host), plan, provider=provider, all_ways=all_ways, as_json=as_json)
