# SPDX-License-Identifier: BSD-3-Clause
"""Programs of one side: cases that run one after the other against a provider."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

import ofipy
from fabtests.base.program import Failed, NotRun, Program

__all__ = ["Bench"]


class Bench:
    """Runs the cases of a program, each in a domain of its own, and counts what came of them.

    Parameters
    ----------
    provider : str, optional
        By name; None: as configured.
    ep_type : str
        Type of the endpoints.
    """

    def __init__(self, program: Program, *, provider: str | None, ep_type: str) -> None:
        self.provider = provider or os.environ.get("OFIPY_PROVIDER")
        self.ep_type = ep_type
        self.passed = 0
        self.failed = 0
        self.left_out: list[str] = []
        infos = ofipy.getinfo(provider=self.provider, ep_type=ep_type, caps=program.caps)
        if not infos:
            if not ofipy.getinfo(provider=self.provider):
                ofipy.open(provider=self.provider)  # says why there is none
            raise NotRun(
                f"capability {program.caps}: {self.provider} lacks it for endpoints of type {ep_type}"
            )
        self.info = infos[0]

    def case(self, function: Callable[["Bench"], object]) -> None:
        """Run one case: its name is the function's, its description the first line of the docstring."""
        name = function.__name__
        try:
            function(self)
        except NotRun as reason:
            self.left_out.append(reason.message)
            self._tell(name, f"NOT RUN: {reason.message}")
        except Exception as error:
            self.failed += 1
            self._tell(name, f"FAIL: {type(error).__name__}: {error}")
        else:
            self.passed += 1
            self._tell(name, "PASS")

    @staticmethod
    def _tell(name: str, outcome: str) -> None:
        click.echo(f"{name:<40} {outcome}")
        sys.stdout.flush()

    @contextmanager
    def domain(self) -> Iterator[ofipy.Domain]:
        """A new domain."""
        with ofipy.Fabric(self.info) as fabric, fabric.domain() as domain:
            yield domain

    def needs(self, cap: str) -> None:
        """End a case as not run when the provider lacks a capability."""
        if not ofipy.getinfo(provider=self.provider, ep_type=self.ep_type, caps=cap):
            raise NotRun(f"capability {cap}: {self.info.provider} lacks it")

    def finish(self) -> None:
        """End as failed, or as not run when nothing ran.

        Raises
        ------
        Failed, NotRun
            As said.
        """
        if self.failed:
            raise Failed(f"{self.failed} of {self.failed + self.passed} cases failed")
        if not self.passed:
            raise NotRun("; ".join(dict.fromkeys(self.left_out)) or "no case")
