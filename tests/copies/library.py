# SPDX-License-Identifier: BSD-3-Clause
"""The C side: built when it is needed, into a folder of the caller's."""

import ctypes
import errno
import itertools
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["Library", "Pair"]

FOLDER = Path(__file__).parent
SOURCES = ("ways.c", "scenarios.c")
OPTIONS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O3",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-tree-loop-distribute-patterns",
)


def list_names(function: Callable[[int], bytes | None]) -> list[str]:
    """The names that a function of the library has for 0, 1, 2, …"""
    return [name.decode() for name in itertools.takewhile(bool, map(function, itertools.count())) if name]


class Pair:
    """Two threads on two cores, and their memory."""

    def __init__(self, library: ctypes.CDLL, place: int) -> None:
        self._library = library
        self._place = place

    def measure(self, scenario: int, way: int, size: int, count: int) -> tuple[list[float], list[float]]:
        """Nanoseconds of each copy, and of each read of its target that follows.

        Raises
        ------
        OSError
            When the copy differs from its source.
        """
        copied, read = (ctypes.c_double * count)(), (ctypes.c_double * count)()
        error = self._library.copies_measure(
            ctypes.c_void_p(self._place), scenario, way, ctypes.c_size_t(size), count, copied, read
        )
        if error:
            raise OSError(error, f"way {way} in scenario {scenario}, {size} bytes: {os.strerror(error)}")
        return list(copied), list(read)


class Library:
    """The built ways and scenarios."""

    def __init__(self, folder: Path) -> None:
        path = folder / "copies.so"
        compiler = shlex.split(os.environ.get("CC", "cc"))
        sources = [str(FOLDER / name) for name in SOURCES]
        subprocess.run(
            [*compiler, *OPTIONS, "-shared", "-fPIC", "-pthread", "-o", str(path), *sources], check=True
        )
        self._library = ctypes.CDLL(str(path), use_errno=True)
        self._library.copies_open.restype = ctypes.c_void_p
        for function in (self._library.copies_way_name, self._library.copies_scenario_name):
            function.restype = ctypes.c_char_p
        self.ways = list_names(self._library.copies_way_name)
        self.scenarios = list_names(self._library.copies_scenario_name)

    def is_supported(self, way: int) -> bool:
        """Whether this processor has the instructions of a way."""
        return bool(self._library.copies_is_supported(way))

    def copy(self, way: int, data: bytes, offset: int) -> bytes:
        """Copy bytes by a way, both to and from this offset of a larger buffer. Returns that buffer."""
        source = ctypes.create_string_buffer(b"\0" * offset + data, offset + len(data))
        target = ctypes.create_string_buffer(len(data) + 2 * offset)
        places = (ctypes.c_void_p(ctypes.addressof(buffer) + offset) for buffer in (target, source))
        self._library.copies_copy(way, *places, ctypes.c_size_t(len(data)))
        return target.raw

    @contextmanager
    def open_pair(self, cores: tuple[int, int], size: int) -> Iterator[Pair]:
        """A pair for copies of up to so many bytes. The calling thread is on the first core meanwhile."""
        before = os.sched_getaffinity(0)
        place = self._library.copies_open(*cores, ctypes.c_size_t(size))
        if not place:
            error = ctypes.get_errno() or errno.ENOMEM
            raise OSError(error, os.strerror(error))
        try:
            yield Pair(self._library, place)
        finally:
            self._library.copies_close(ctypes.c_void_p(place))
            os.sched_setaffinity(0, before)
