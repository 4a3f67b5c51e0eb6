# SPDX-License-Identifier: BSD-3-Clause
"""What a program is, and where programs are found."""

import errno
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import click

from ofipy.cli.support import CommandError

__all__ = ["GROUPS", "Failed", "NotRun", "Program", "find", "names"]

GROUPS = ("benchmarks", "functional", "unit")

OutOfBand = Literal["", "sync", "address", "sync+address"]


class NotRun(CommandError):
    """The provider, or ofipy, lacks what the program needs."""

    def __init__(self, reason: str, *, code: int = errno.ENODATA) -> None:
        super().__init__(reason, code=code)  # type: ignore[arg-type]

    def show(self, file: Any = None) -> None:
        """Say it in one line that the suite finds again."""
        click.echo(f"not run: {self.message}", err=True, file=file)


class Failed(Exception):
    """The test did not find what it expects."""

    exit_code = 1


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of the suite: one module has one, named as the module."""

    summary: str
    """One line of help."""
    run: Callable[[Any], None] | None = None
    """One side of two, given its session; the other one runs it too."""
    cases: Callable[[Any], None] | None = None
    """A program of one side: declares its cases at the bench that it is given."""
    ep_type: str = "rdm"
    """Type of endpoint without ``-e``."""
    caps: str = "msg"
    """What a provider must declare; see :class:`ofipy.Cap`."""
    tagged: bool = False
    """Whether messages have tags: their numbers."""
    out_of_band: OutOfBand = ""
    """What goes over the TCP connection without ``-b`` or ``-E``."""
    meet: bool = True
    """Whether the session exchanges addresses; else the program does."""
    open: bool = True
    """Whether the session opens an endpoint and says where it is; else the program does."""
    post: bool = True
    """Whether one receive is always posted ahead."""
    late_receives: bool = False
    """Whether receives are posted when they are wanted, as with ``-r``."""
    counters: bool = False
    """Whether waits are for counters without ``-t``."""
    remote_events: bool = False
    """Whether accesses of the peer must leave a trace."""
    size: int | None = 1024
    """Bytes of a message without ``-S``; None: a selection of sizes."""
    iterations: int | None = 1000
    """Repetitions without ``-I``; None: a number that suits the size."""
    delivery: bool = False
    """Whether operations complete at delivery without ``-U``."""
    end: bool = True
    """Whether both sides meet once more before they end."""
    options: tuple[Callable[[Any], Any], ...] = ()
    """Decorators of :mod:`click` for options of its own; they go before common ones of the same letter."""
    check: Callable[[Any], None] | None = None
    """Refuses combinations of options."""


def names() -> dict[str, str]:
    """Every program: its name and the group that it is in."""
    found = {}
    for group in GROUPS:
        package = import_module(f"fabtests.{group}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("_"):
                found[module.name] = group
    return found


def find(name: str) -> Program:
    """The program of a name that :func:`names` has."""
    program: Program = import_module(f"fabtests.{names()[name]}.{name}").PROGRAM
    return program
