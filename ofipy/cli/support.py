# SPDX-License-Identifier: BSD-3-Clause
"""What the command lines share: exit codes, consoles, a deadline, errors in one sentence.

Results go to standard output; progress, warnings and errors to standard error.
"""

import contextlib
import enum
import json
import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "HOST",
    "JSON",
    "JSON_LINES",
    "ROOT",
    "CommandError",
    "ExitCode",
    "Seconds",
    "data_console",
    "deadline",
    "interval",
    "is_missing_provider",
    "print_json",
    "run_command",
    "status_console",
]

# Most of what is printed comes from elsewhere: providers, systems, peers. A bracket in it is a bracket.
_PLAIN: Any = {"markup": False, "emoji": False, "highlight": False}

PIPE_WIDTH = 160  # columns of a table that goes into a file or a pipe, where no terminal sets a limit


class ExitCode(enum.IntEnum):
    """What the exit code of a command says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_PROVIDER = 3
    TIMEOUT = 124
    INTERRUPTED = 130


class CommandError(click.ClickException):
    """An error told in one sentence, with the exit code that goes with it."""

    def __init__(self, message: str, *, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def data_console() -> "Console":
    """The console for tables: as wide as the terminal; generous where there is none."""
    from rich.console import Console

    free = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPE_WIDTH if free else None, **_PLAIN)


def status_console() -> "Console":
    """The console for progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, **_PLAIN)


def print_json(document: Any) -> None:
    """Write one JSON document to standard output."""
    click.echo(json.dumps(document, indent=2))


class Seconds(click.FloatRange):
    """Value of ``--timeout``: a time that a timer of the system can run for."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=1e9)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is not a number, too: it is neither below nor above."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no time", param, ctx)
        return seconds


Option = Callable[[Callable[..., Any]], Callable[..., Any]]

ROOT: Option = click.option(
    "--root",
    metavar="DIR|TAR",
    type=click.Path(),
    help="Read the recorded machine in this folder or tar archive, not this host.",
)
HOST: Option = click.option(
    "--host",
    metavar="HOST[:PORT]",
    help="Look at another host, on which `ofipy doctor --serve` runs.",
)
JSON: Option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
JSON_LINES: Option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, or one a line where there are several."
)


def interval(help: str, *short: str, values: click.FloatRange | None = None) -> Option:
    """Make the option ``--interval``, a second unless the user says otherwise."""
    return click.option(
        *short,
        "--interval",
        type=values or Seconds(),
        metavar="SECONDS",
        default=1,
        show_default=True,
        help=help,
    )


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError in the main thread when the block takes longer.

    Parameters
    ----------
    seconds : float, optional
        None: no limit.

    Raises
    ------
    TimeoutError
        When the time is over, out of any wait.
    """
    if seconds is None:
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not finished within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_command(command: click.Command, name: str) -> int:
    """Run a command line and turn whatever ends it into an exit code.

    Parameters
    ----------
    command : click.Command
        What to run with the arguments of this process.
    name : str
        The program's name in messages.

    Returns
    -------
    int
        One of :class:`ExitCode`.
    """
    try:
        start_log()
        result = command.main(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except click.Abort:
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.code if isinstance(error, CommandError) else error.exit_code
    except TimeoutError as error:
        click.echo(f"{name}: {error}", err=True)
        return ExitCode.TIMEOUT
    except BrokenPipeError:
        # The reader of our output is gone; leave nothing that the interpreter would try to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except OSError as error:  # ofipy.FabricError is one
        click.echo(f"{name}: {error}", err=True)
        return ExitCode.NO_PROVIDER if is_missing_provider(error) else ExitCode.FAILED
    except Exception as error:
        # The benchmarks' own errors say by an attribute that they are for the user; any other one is a bug.
        code = getattr(error, "exit_code", None)
        if code is None:
            raise
        click.echo(f"{name}: {error}", err=True)
        return int(code)
    return result if isinstance(result, int) else ExitCode.OK


def start_log() -> None:
    """Show the library's log on standard error, from the level that ``OFIPY_LOG`` names.

    Raises
    ------
    CommandError
        When there is no such level.
    """
    from ofipy import parameters
    from ofipy._discovery.providers import configure

    configure()
    levels = {name.lower(): level for name, level in logging.getLevelNamesMapping().items()}
    wanted = next(each.value for each in parameters() if each.name == "OFIPY_LOG")
    if wanted not in levels:
        raise CommandError(
            f"OFIPY_LOG is {wanted!r}; debug, info, warning or error is meant", code=ExitCode.USAGE
        )
    logging.basicConfig(format="%(name)s: %(levelname)s: %(message)s", stream=sys.stderr)
    logging.getLogger("ofipy").setLevel(levels[wanted])


def is_missing_provider(error: Exception) -> bool:
    """Whether the error says that there is no provider to work with."""
    from ofipy import ProviderUnavailable

    return isinstance(error, ProviderUnavailable)
