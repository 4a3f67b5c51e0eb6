# SPDX-License-Identifier: BSD-3-Clause
"""The options that every program of two sides takes, named as in libfabric's programs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from fabtests.base.out_of_band import OOB_PORT
from fabtests.base.program import NotRun
from fabtests.base.sizes import Sizes
from ofipy.cli.support import Seconds
from ofipy.pingpong.plan import WINDOW, count_repetitions
from ofipy.pingpong.side import DEFAULT_PORT

if TYPE_CHECKING:
    from fabtests.base.program import Program

    Number = click.ParamType[int]
else:
    Number = click.ParamType  # not generic in the oldest click that pyproject.toml allows

__all__ = ["AGREED_OPTIONS", "COMMON", "Number", "Options", "attach_values", "make_options"]


AGREED_OPTIONS = {
    "-S": "sizes",
    "-I": "iterations",
    "-w": "warmup",
    "-W": "window",
    "-C": "connections",
    "-v": "verify",
    "-r": "late_receives",
    "-o": "operation",
}
"""Options that both sides must have alike, by letter: the field of :class:`Options`; programs themselves add ``-o``."""


@dataclass(slots=True, kw_only=True)
class Options:
    """What the command line said; see the help text of each option."""

    host: str | None = None
    provider: str | None = None
    ep_type: str
    source_address: str | None = None
    source_port: str = DEFAULT_PORT
    destination_port: str = DEFAULT_PORT
    oob_sync: int | None = None
    oob_address: int | None = None
    oob_port: int | None = None
    oob_host: str | None = None
    connections: int = 1
    iterations: int | None
    warmup: int = 10
    window: int = WINDOW
    sizes: Sizes
    verify: bool = False
    machine_readable: bool = False
    as_json: bool = False
    delivery: bool = False
    wait: str = "sread"
    completion: str
    inject: int | None = None
    align: bool = False
    late_receives: bool = False
    pin_core: str | None = None
    local: bool = False
    announce: bool = False
    timeout: float | None = None
    progress: str = "auto"
    threading: str = "safe"
    extra: dict[str, Any] = field(default_factory=dict)
    """Values of the program's own options."""
    given: frozenset[str] = frozenset()
    """Letters of the command line, of options that both sides must have alike."""

    @property
    def client(self) -> bool:
        """Whether this side is the client."""
        return self.host is not None

    def count(self, size: int, *, factor: int = 1) -> int:
        """Repetitions for messages of `size` bytes."""
        return count_repetitions(self.iterations, size, factor=factor)


def attach_values(argument: str) -> str:
    """``-b`` and ``-E`` take their port attached, as ``-b=4000``; alone they mean the usual one."""
    return f"{argument}={OOB_PORT}" if argument in ("-b", "-E") else argument


class Port(Number):
    """A port, with the ``=`` that libfabric's programs want before it."""

    name = "port"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        """Read it; 0: any, which the server then announces."""
        try:
            port = int(str(value).removeprefix("="))
        except ValueError:
            port = -1
        if not 0 <= port < 65536:
            self.fail(f"{value!r} is no port", parameter, context)
        return port


def _no_prefix(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
    if value and not context.resilient_parsing:
        raise NotRun("capability msg_prefix: no provider of ofipy wants room before a message")
    return value


_number = click.IntRange(min=1)

COMMON: tuple[Callable[[Any], Any], ...] = (
    click.argument("host", required=False),
    click.option("-p", "--provider", metavar="NAME", help="Provider, such as shm; default: as configured."),
    click.option(
        "-e", "--endpoint", "ep_type", type=click.Choice(["rdm", "msg", "dgram"]), help="Type of endpoint."
    ),
    click.option("-s", "--source-address", metavar="ADDRESS", help="Address of the interface to use."),
    click.option(
        "-B",
        "--source-port",
        metavar="PORT",
        default=DEFAULT_PORT,
        show_default=True,
        help="Server: its own port or name.",
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
        "oob_sync",
        type=Port(),
        metavar="[=PORT]",
        help=f"Exchange addresses and synchronise over a TCP connection; default port {OOB_PORT}.",
    ),
    click.option(
        "-E",
        "oob_address",
        type=Port(),
        metavar="[=PORT]",
        help=f"Exchange addresses over a TCP connection; default port {OOB_PORT}.",
    ),
    click.option("-O", "oob_host", metavar="HOST", help="Host of that connection; default: HOST."),
    click.option(
        "-C",
        "connections",
        type=_number,
        metavar="NUMBER",
        default=1,
        help="Number of clients, one after the other.",
    ),
    click.option("-I", "--iterations", type=_number, metavar="NUMBER", help="Timed repetitions."),
    click.option(
        "-w",
        "--warmup",
        type=click.IntRange(min=0),
        default=10,
        show_default=True,
        metavar="NUMBER",
        help="Repetitions before the clock starts.",
    ),
    click.option(
        "-W",
        "--window",
        type=_number,
        default=WINDOW,
        show_default=True,
        metavar="NUMBER",
        help="Messages in flight.",
    ),
    click.option(
        "-S",
        "--sizes",
        metavar="SIZE",
        help="Bytes of a message: a number, 'all', l:8,64,1m or r:start,increment,end.",
    ),
    click.option("-v", "--verify", is_flag=True, help="Check every byte; the check is timed too."),
    click.option("-m", "--machine-readable", is_flag=True, help="Print one YAML mapping for each row."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table."),
    click.option("-U", "--delivery", is_flag=True, help="Operations complete when delivered."),
    click.option(
        "-c",
        "wait",
        type=click.Choice(["spin", "sread", "fd", "yield"]),
        default="sread",
        show_default=True,
        help="How to wait: spin polls, sread waits in the library, fd waits on its descriptor, yield polls and yields.",
    ),
    click.option("-t", "completion", type=click.Choice(["queue", "counter"]), help="Object to wait for."),
    click.option(
        "-j", "inject", type=click.IntRange(min=0), metavar="BYTES", help="Inject messages up to this size."
    ),
    click.option("-l", "align", is_flag=True, help="Align buffers to pages."),
    click.option(
        "-k",
        "prefix",
        is_flag=True,
        expose_value=False,
        callback=_no_prefix,
        help="Request prefix mode, which does not run.",
    ),
    click.option(
        "-r", "late_receives", is_flag=True, help="Post each receive late instead of ahead (ping-pong)."
    ),
    click.option("--pin-core", metavar="CORES", help="Run on these cores: 0,2-4."),
    click.option("--local", is_flag=True, help="Start both sides on this machine, pinned to two cores."),
    click.option("--announce", is_flag=True, hidden=True),
    click.option("--oob-port", type=Port(), hidden=True),
    click.option(
        "--timeout", type=Seconds(), metavar="SECONDS", help="End with exit code 124 after this time."
    ),
    click.option(
        "--data-progress",
        "progress",
        type=click.Choice(["auto", "manual"]),
        default="auto",
        show_default=True,
        help="Progress: by a helper thread too (auto), or only by calls (manual).",
    ),
    click.option(
        "--threading",
        type=click.Choice(["safe", "completion", "domain"]),
        default="safe",
        show_default=True,
        help="Threading model.",
    ),
)


def make_options(program: "Program", values: dict[str, Any]) -> Options:
    """Common options and the program's own out of what the command line gave."""
    known = {name: values.pop(name) for name in list(values) if name in Options.__dataclass_fields__}
    text = known.pop("sizes", None)
    try:
        sizes = Sizes.parse(text, default=program.size)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    known["ep_type"] = known.get("ep_type") or program.ep_type
    known["completion"] = known.get("completion") or ("counter" if program.counters else "queue")
    known["iterations"] = known.get("iterations") or program.iterations
    known["delivery"] = known.get("delivery") or program.delivery
    options = Options(sizes=sizes, extra=values, given=_given(), **known)
    if options.local and options.client:
        raise click.UsageError("--local starts both sides here: give no host with it")
    if program.check is not None:
        program.check(options)
    return options


def _given() -> frozenset[str]:
    context = click.get_current_context(silent=True)
    return frozenset(
        letter
        for letter, name in AGREED_OPTIONS.items()
        if context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )
