# SPDX-License-Identifier: BSD-3-Clause
"""A program as a command of the command line."""

from collections.abc import Callable
from typing import Any

import rich_click as click

from fabtests.base.cases import Bench
from fabtests.base.local import serve_here
from fabtests.base.options import COMMON, attach_values, make_options
from fabtests.base.program import Program
from fabtests.base.session import Session
from ofipy.cli.support import deadline

__all__ = ["command_of"]


class ProgramCommand(click.RichCommand):
    """A command whose ``-b`` and ``-E`` take a value that must be attached."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Give them the usual port where none is attached."""
        return super().parse_args(context, [attach_values(each) for each in args])


def command_of(name: str, program: Program) -> click.Command:
    """Make the command of a program."""
    if program.cases is not None:
        return _one_side(name, program)
    return _two_sides(name, program)


def _two_sides(name: str, program: Program) -> click.Command:
    def run(**values: Any) -> None:
        options = make_options(program, values)
        with deadline(options.timeout), serve_here(options), Session(program, options) as session:
            assert program.run is not None
            program.run(session)
            if program.end:
                session.finish()
            side = "client" if session.client else "server"
            session.report.document(name, side, session.domain.provider)

    return click.command(
        name,
        cls=ProgramCommand,
        help=program.summary,
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_decorate(run, program))


def _decorate(run: Callable[..., None], program: Program) -> Callable[..., None]:
    """Attach the options, the program's own in place of common ones with the same letter."""
    own = _letters(program.options)
    decorated = run
    for option in reversed((*COMMON, *program.options)):
        if option in program.options or not own & _letters((option,)):
            decorated = option(decorated)
    return decorated


def _letters(options: tuple[Callable[[Any], Any], ...]) -> set[str]:
    letters: set[str] = set()
    for option in options:
        probe = option(lambda: None)
        letters |= {each for parameter in probe.__click_params__ for each in parameter.opts}
    return letters


def _one_side(name: str, program: Program) -> click.Command:
    def run(provider: str | None, ep_type: str | None, timeout: float | None, **_values: Any) -> None:
        assert program.cases is not None
        with deadline(timeout):
            bench = Bench(program, provider=provider, ep_type=ep_type or program.ep_type)
            program.cases(bench)
            bench.finish()

    wanted = {"--provider", "--endpoint", "--timeout"}
    decorated: Callable[..., None] = run
    for option in COMMON:
        if _letters((option,)) & wanted:
            decorated = option(decorated)
    return click.command(
        name,
        cls=ProgramCommand,
        help=program.summary,
        context_settings={"help_option_names": ["-h", "--help"]},
    )(decorated)
