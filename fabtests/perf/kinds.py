# SPDX-License-Identifier: BSD-3-Clause
"""What a program of ``fabtests perf`` measures, and where the programs are found."""

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

__all__ = ["Kind", "find", "names"]

ATOMIC_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A program: one module has one, named as the module."""

    title: str
    """The operation, as the banner has it."""
    operation: Literal["send", "write", "read", "atomic"]
    """What moves the bytes."""
    latency: bool
    """Time of single operations; else what many under way reach."""
    iterations: int = 1000
    """Operations of each queue pair without ``-n``."""

    @property
    def summary(self) -> str:
        """One line of help."""
        return f"{'Latency' if self.latency else 'Bandwidth and message rate'} of {_NOUNS[self.operation]}."

    @property
    def caps(self) -> str:
        """What a provider must declare; see :class:`ofipy.Cap`."""
        return {"send": "msg", "atomic": "rma|atomic"}.get(self.operation, "rma")

    @property
    def size(self) -> int:
        """Bytes without ``-s``."""
        if self.operation == "atomic":
            return ATOMIC_BYTES
        return 2 if self.latency else 65536

    @property
    def answers(self) -> bool:
        """Whether the samples are round trips, of which half is told."""
        return self.latency and self.operation in ("send", "write")


_NOUNS = {
    "send": "messages",
    "write": "writes into the server's memory",
    "read": "reads of the server's memory",
    "atomic": "atomic operations on the server's memory",
}


def names() -> list[str]:
    """Every program."""
    package = import_module("fabtests.perf.programs")
    return [module.name for module in pkgutil.iter_modules(package.__path__)]


def find(name: str) -> Kind:
    """The program of a name that :func:`names` has."""
    kind: Kind = import_module(f"fabtests.perf.programs.{name}").KIND
    return kind
