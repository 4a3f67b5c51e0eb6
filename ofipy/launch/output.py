# SPDX-License-Identifier: BSD-3-Clause
"""What the processes print, a line at a time behind the number of who says it."""

import asyncio
import os
from collections import deque
from typing import BinaryIO

__all__ = ["Output"]

_COLOURS = (36, 33, 32, 35, 34, 31)  # of terminals: cyan first
_CHUNK = 1 << 16
_REMEMBERED = 100  # lines of standard error of each process
_SHOWN = 20  # of them, where no traceback says where it begins
_TRACEBACK = b"Traceback (most recent call last)"


class Output:
    """One for all processes.

    Parameters
    ----------
    size : int
        Processes, for the width of the prefix.
    stdout, stderr : binary files
        Where it goes.
    """

    def __init__(self, size: int, stdout: BinaryIO, stderr: BinaryIO) -> None:
        self._width = len(str(size - 1))
        self._files = (stdout, stderr)
        self._coloured = [_wants_colour(file) for file in self._files]
        self._errors: dict[int, deque[bytes]] = {}
        self._last: tuple[int, int] | None = None

    async def copy(self, rank: int, reader: asyncio.StreamReader, number: int) -> None:
        """Copy one stream of a process to its end; `number` is 1 for standard output, 2 for standard error."""
        rest = b""
        while chunk := await reader.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _CHUNK:
                lines, rest = [*lines, rest], b""
            self._write(rank, number, lines)
        if rest:
            self._write(rank, number, [rest])

    def _write(self, rank: int, number: int, lines: list[bytes]) -> None:
        if not lines:
            return
        file, prefix = self._files[number - 1], self._prefix(rank, number)
        file.write(b"".join(prefix + line + b"\n" for line in lines))
        file.flush()
        self._last = rank, number
        if number == 2:
            self._errors.setdefault(rank, deque(maxlen=_REMEMBERED)).extend(lines)

    def _prefix(self, rank: int, number: int) -> bytes:
        text = f"[{rank:{self._width}}]"
        if self._coloured[number - 1]:
            text = f"\x1b[{_COLOURS[rank % len(_COLOURS)]}m{text}\x1b[0m"
        return text.encode() + b" "

    def repeat_errors(self, rank: int) -> None:
        """Show the end of what a process has said of its failure, unless nobody has said anything since."""
        lines = list(self._errors.get(rank, ()))
        if not lines or self._last == (rank, 2):
            return
        starts = [index for index, line in enumerate(lines) if line.startswith(_TRACEBACK)]
        self._write(rank, 2, lines[starts[-1] if starts else -_SHOWN :])


def _wants_colour(file: BinaryIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or file.isatty()
