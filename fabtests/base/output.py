# SPDX-License-Identifier: BSD-3-Clause
"""Result lines with the columns of libfabric's programs, so that scripts written for those read these too."""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import numpy.typing as npt

from ofipy.pingpong.plan import Timed
from ofipy.pingpong.sizes import shorten_bytes, shorten_count

if TYPE_CHECKING:
    from fabtests.base.options import Options

__all__ = ["MachineLines", "Report", "Row", "TableLines"]

HEADER = f"{'bytes':<8}{'iters':<8}{'total':<8}{'time':>8} {'MB/sec':>10}{'usec/xfer':>13}{'Mxfers/sec':>13}"
PERCENTILES = (50, 99, 99.9)


@dataclass(frozen=True, slots=True)
class Row(Timed):
    """What one size took, with percentiles."""

    percentiles: tuple[float, ...] = ()
    """Microseconds of single transfers at 50, 99 and 99.9 %; of a window, its share; empty where nobody looked."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = [f"p{each:g}_usec".replace(".", "_") for each in PERCENTILES]
        return {
            "bytes": self.bytes,
            "iterations": self.iterations,
            "total": self.total,
            "seconds": self.seconds,
            "mb_per_sec": self.mb_per_sec,
            "usec_per_transfer": self.usec_per_transfer,
            "million_per_sec": self.million_per_sec,
            **dict(zip(names, self.percentiles, strict=False)),
        }


class TableLines:
    """Columns for people: those of libfabric's programs, and percentiles behind them where there are any."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._header = False

    def add(self, row: Row) -> None:
        """Write one row, before the first one the header."""
        if not self._header:
            more = "".join(f"{f'p{each:g}':>10}" for each in PERCENTILES) if row.percentiles else ""
            self._write(HEADER + more)
            self._header = True
        self._write(
            f"{shorten_bytes(row.bytes):<8}{shorten_count(row.iterations):<8}{shorten_bytes(row.total):<8}"
            f"{row.seconds:>8.2f}s{row.mb_per_sec:>10.2f}{row.usec_per_transfer:>13.2f}{row.million_per_sec:>13.2f}"
            + "".join(f"{each:>10.2f}" for each in row.percentiles)
        )


class MachineLines:
    """One YAML mapping a row, below the command that ran (``-m``)."""

    def __init__(self, write: Callable[[str], None], *, command: str) -> None:
        self._write = write
        self._command: str | None = command

    def add(self, row: Row) -> None:
        """Write one row, before the first one the command."""
        if self._command is not None:
            self._write("---")
            self._write(f"{self._command} :")
            self._command = None
        self._write(
            f"- {{ xfer_size: {row.bytes}, iterations: {row.iterations}, total: {row.total}, "
            f"time: {row.seconds:.6f}, MB/sec: {row.mb_per_sec:.6f}, "
            f"usec/xfer: {row.usec_per_transfer:.6f}, Mxfers/sec: {row.million_per_sec:.6f} }}"
        )


class Report:
    """Rows in the form that the options ask for."""

    def __init__(self, options: "Options") -> None:
        self._json = options.as_json
        self._rows: list[Row] = []
        self.wants_percentiles = not options.machine_readable
        self._lines: MachineLines | TableLines = (
            MachineLines(click.echo, command=shlex.join(["fabtests", *sys.argv[1:]]))
            if options.machine_readable
            else TableLines(click.echo)
        )

    def add(
        self,
        size: int,
        iterations: int,
        seconds: float,
        *,
        transfers: int = 1,
        singles: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """Add a row; `singles` are the nanoseconds of single transfers."""
        percentiles: tuple[float, ...] = ()
        if singles is not None and singles.size and self.wants_percentiles:
            percentiles = tuple(float(each) / 1e3 for each in np.percentile(singles, PERCENTILES))
        row = Row(size, iterations, max(seconds, 1e-9), transfers, percentiles)
        self._rows.append(row)
        if not self._json:
            self._lines.add(row)
            sys.stdout.flush()

    def document(self, name: str, side: str, provider: str) -> None:
        """With ``--json``: print all of it."""
        if not self._json:
            return
        from ofipy import __version__
        from ofipy.pingpong.machine import describe_machine

        document = {
            "version": 1,
            "program": name,
            "side": side,
            "provider": provider,
            "ofipy": __version__,
            "rows": [row.as_dict() for row in self._rows],
            "machine": describe_machine(),
        }
        click.echo(json.dumps(document, indent=2))
