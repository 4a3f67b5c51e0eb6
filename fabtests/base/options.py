# SPDX-License-Identifier: BSD-3-Clause
"""The options that every program takes, named as in libfabric's programs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rich_click as click

from ofipy.cli.support import Seconds
from ofipy.pingpong.side import DEFAULT_PORT
from ofipy.pingpong.sizes import DEFAULT_SIZES, parse_sizes

__all__ = ["Options", "Sizes", "common_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line said; see the help text of each option."""

    host: str | None
    provider: str | None
    source_address: str | None
    source_port: str
    destination_port: str
    out_of_band: int | None
    iterations: int | None
    warmup: int
    sizes: tuple[int, ...]
    verify: bool
    machine_readable: bool
    delivery: bool
    pin_core: int | None
    local: bool
    timeout: float | None


class Sizes(click.ParamType[tuple[int, ...]]):
    """Value of ``-S``."""

    name = "size"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, ...]:
        """Parse text; defaults pass through."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_sizes(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


OPTIONS = (
    click.argument("host", required=False),
    click.option("-p", "--provider", metavar="NAME", help="Provider, such as shm; default: as configured."),
    click.option("-s", "--source-address", metavar="ADDRESS", help="Address of the interface to use."),
    click.option(
        "-B",
        "--source-port",
        metavar="PORT",
        default=DEFAULT_PORT,
        show_default=True,
        help="Server: port or name to be met at.",
    ),
    click.option(
        "-P",
        "--destination-port",
        metavar="PORT",
        default=DEFAULT_PORT,
        show_default=True,
        help="Client: port or name of the server.",
    ),
    click.option(
        "-b",
        "out_of_band",
        metavar="PORT",
        type=click.IntRange(1, 65535),
        is_flag=False,
        flag_value=int(DEFAULT_PORT),
        help="Exchange addresses over a TCP connection on this port.",
    ),
    click.option(
        "-I",
        "--iterations",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        help="Timed round trips of each size; default: 10000 for small sizes, 100 from 1 MiB.",
    ),
    click.option(
        "-w",
        "--warmup",
        type=click.IntRange(min=0),
        default=10,
        show_default=True,
        metavar="NUMBER",
        help="Round trips before the clock starts.",
    ),
    click.option(
        "-S",
        "--sizes",
        type=Sizes(),
        default=DEFAULT_SIZES,
        metavar="SIZE",
        help="Bytes of a message, as 8,64k,1m, 'all' or r:start,increment,end; default: a selection.",
    ),
    click.option("-v", "--verify", is_flag=True, help="Check every byte; the check is timed too."),
    click.option("-m", "--machine-readable", is_flag=True, help="Print one YAML mapping a row."),
    click.option("-U", "--delivery", is_flag=True, help="Sends complete when delivered."),
    click.option(
        "--pin-core",
        type=click.IntRange(min=0),
        metavar="CORE",
        help="Run on this core; with --local the other side runs on the next one.",
    ),
    click.option("--local", is_flag=True, help="Start both sides here, pinned to two cores."),
    click.option(
        "--timeout",
        type=Seconds(),
        metavar="SECONDS",
        help="End with exit code 124 after this time.",
    ),
)


def common_options(function: Callable[[Options], None]) -> Callable[..., None]:
    """Decorate a program so that it takes the common options as one :class:`Options`."""

    def run(**values: Any) -> None:
        options = Options(**values)
        if options.local and options.host is not None:
            raise click.UsageError("--local starts both sides here: give no host with it")
        function(options)

    run.__doc__ = function.__doc__
    decorated: Callable[..., None] = run
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated
