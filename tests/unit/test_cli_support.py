# SPDX-License-Identifier: BSD-3-Clause
"""Exit codes, deadlines and consoles of the command lines."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import click
import pytest

from ofipy import FabricError, ProviderUnavailable
from ofipy.cli.support import CommandError, ExitCode, Seconds, data_console, deadline, run_command


def run(action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["program"])

    @click.command()
    def command() -> None:
        action()

    return run_command(command, "program")


def raising(error: BaseException) -> Callable[[], object]:
    def act() -> object:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("no"), 1),
        (CommandError("no", code=ExitCode.NO_PROVIDER), 3),
        (click.UsageError("no"), 2),
        (FabricError("no"), 1),
        (ProviderUnavailable("no"), 3),
        (TimeoutError("no"), 124),
        (KeyboardInterrupt(), 130),
        (OSError("no"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_become_exit_codes(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(raising(error), monkeypatch) == code
    printed = capfd.readouterr()
    assert printed.out == ""
    assert isinstance(error, KeyboardInterrupt) or "no" in printed.err


def test_success_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(lambda: None, monkeypatch) == 0


def test_an_error_can_name_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told(Exception):
        exit_code = 7

    assert run(raising(Told("told")), monkeypatch) == 7


def test_a_bug_stays_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run(raising(ZeroDivisionError()), monkeypatch)


@pytest.mark.timeout(60, method="thread")  # the other method is the alarm that the deadline takes
def test_a_deadline_ends_a_wait() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError, match=r"0\.05 s"), deadline(0.05):
        threading.Event().wait(20)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_no_deadline_sets_no_timer() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with deadline(None):
        assert signal.getsignal(signal.SIGALRM) is before


def test_a_closed_pipe_is_no_traceback() -> None:
    program = (
        "import click, sys\n"
        "from ofipy.cli.support import run_command\n"
        "command = click.command()(lambda: [click.echo('x' * 1000) for _ in range(1000)])\n"
        "sys.exit(run_command(command, 'program'))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(20) == 1


def test_a_table_in_a_pipe_is_not_squeezed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert data_console().width == 160
        monkeypatch.setenv("COLUMNS", "60")
        assert data_console().width == 60


def log_level(**environment: str) -> subprocess.CompletedProcess[str]:
    program = (
        "import click, logging, sys\n"
        "from ofipy.cli.support import run_command\n"
        "show = lambda: click.echo(logging.getLevelName(logging.getLogger('ofipy').level))\n"
        "sys.exit(run_command(click.command()(show), 'program'))\n"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_log_level_comes_from_the_environment() -> None:
    assert log_level(OFIPY_LOG="debug").stdout == "DEBUG\n"
    assert log_level(OFIPY_LOG="").stdout == "WARNING\n"


def test_an_unknown_log_level_is_a_usage_error() -> None:
    result = log_level(OFIPY_LOG="loud")
    assert result.returncode == 2
    assert "'loud'" in result.stderr


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "1e30", "soon", ""])
def test_times_that_no_timer_runs_for(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"0<x<=1000000000\.0|no time|not a valid float"):
        Seconds().convert(text, None, None)


def test_times() -> None:
    for seconds in (1e-6, 0.5, 1e9):
        with deadline(Seconds().convert(str(seconds), None, None) + 1):
            pass
