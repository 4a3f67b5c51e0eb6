# SPDX-License-Identifier: BSD-3-Clause
"""Result lines with the columns of libfabric's programs, so that scripts written for those read these too."""

from collections.abc import Callable

from ofipy.pingpong.plan import Measurement
from ofipy.pingpong.sizes import shorten_bytes, shorten_count

__all__ = ["MachineLines", "TableLines"]

HEADER = f"{'bytes':<8}{'iters':<8}{'total':<8}{'time':>8} {'MB/sec':>10}{'usec/xfer':>13}{'Mxfers/sec':>13}"


class TableLines:
    """Columns for people."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._header = False

    def add(self, row: Measurement) -> None:
        """Write one row, before the first one the header."""
        if not self._header:
            self._write(HEADER)
            self._header = True
        self._write(
            f"{shorten_bytes(row.bytes):<8}{shorten_count(row.iterations):<8}{shorten_bytes(row.total):<8}"
            f"{row.seconds:>8.2f}s{row.mb_per_sec:>10.2f}{row.usec_per_transfer:>13.2f}{row.million_per_sec:>13.2f}"
        )


class MachineLines:
    """One YAML mapping a row, below the command that ran (``-m``)."""

    def __init__(self, write: Callable[[str], None], *, command: str) -> None:
        self._write = write
        self._command: str | None = command

    def add(self, row: Measurement) -> None:
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
