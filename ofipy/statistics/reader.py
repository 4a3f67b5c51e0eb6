# SPDX-License-Identifier: BSD-3-Clause
"""Find the statistics pages of all processes that this user may look into, and read them.

A page is an open file of its process, so the kernel's list of open files is the list of pages: nothing is registered
anywhere, and nothing is left behind. Who may read a page, the kernel decides.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from typing import Final, Self

from ofipy.statistics.page import (
    CHANGES_AT,
    PAGE_SIZE,
    UnknownPage,
    read_changes,
    read_endpoints,
    read_header,
)
from ofipy.statistics.records import Endpoint, Process, Snapshot

__all__ = ["Reader"]

_LINK: Final = "/memfd:ofipy-stats (deleted)"
_GET_SEALS: Final = 1034  # F_GET_SEALS, fcntl(2)
_SEAL_SHRINK: Final = 0x0002
_TRIES: Final = 5  # to read a page between two changes of its entries


class _Page:
    """An open page. Its values stay readable when the process has ended."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(self._descriptor)
            sealed = fcntl.fcntl(self._descriptor, _GET_SEALS) & _SEAL_SHRINK
            if not (stat.S_ISREG(status.st_mode) and status.st_size == PAGE_SIZE and sealed):
                raise UnknownPage
            self.inode = status.st_ino
            self.header = read_header(os.pread(self._descriptor, 4096, 0))
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        """A copy in which no entry was changed half way, if there is such a moment."""
        copy = b""
        for _ in range(_TRIES):
            # A read does not allocate what the process has never written, as reading mapped memory would.
            copy = os.pread(self._descriptor, PAGE_SIZE, 0)
            before = read_changes(copy[CHANGES_AT : CHANGES_AT + 8])
            after = read_changes(os.pread(self._descriptor, 8, CHANGES_AT))
            if before == after and not before % 2:
                break
        return copy

    def close(self) -> None:
        os.close(self._descriptor)


class _Known:
    """A process that has pages."""

    def __init__(self, pid: int, start_time: int, program: str) -> None:
        self.pid, self.start_time, self.program = pid, start_time, program
        self.pages: list[_Page] = []

    def read(self, *, ended: bool) -> Process:
        """What its pages say now."""
        header, endpoints = self.pages[0].header, list[Endpoint]()
        for page in self.pages:
            copy = page.read()
            header = read_header(copy)
            endpoints += read_endpoints(copy)
        return Process(
            pid=self.pid,
            start_time=self.start_time,
            program=self.program,
            job=header.job,
            rank=header.rank,
            ended=ended,
            endpoints=tuple(endpoints),
        )

    def close(self) -> None:
        for page in self.pages:
            page.close()


class Reader:
    """Reads the statistics pages of this host's processes. It holds them open, so the last values are not lost.

    Processes of other users, and those that are not dumpable (prctl(2)), can be read with the capabilities
    CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH. A process that began and ended between two scans is never seen.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Known] = {}

    def scan(self) -> Snapshot:
        """Read every page that there is.

        Returns
        -------
        Snapshot
            The processes that have pages, with those that have ended since the last scan.
        """
        unreadable, found = 0, dict[tuple[int, int], _Known]()
        for pid in _pids():
            try:
                known, complete = self._look(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                unreadable += _is_program(pid)
                continue
            unreadable += not complete
            if known is not None:
                found[known.pid, known.start_time] = known
        ended = [known for key, known in self._known.items() if key not in found]
        processes = [known.read(ended=False) for known in found.values()]
        processes += [known.read(ended=True) for known in ended]
        for known in ended:
            known.close()
        self._known = found
        return Snapshot(tuple(processes), unreadable)

    def _look(self, pid: int) -> tuple[_Known | None, bool]:
        """The process with the pages that it has now, and whether all of them could be read."""
        start_time, complete = _start_time(pid), True
        known = self._known.get((pid, start_time))
        have = {page.inode for page in known.pages} if known else set[int]()
        for path in _page_paths(pid):
            try:
                if os.stat(path).st_ino in have:
                    continue
                page = _Page(path)
            except FileNotFoundError:
                continue
            except (UnknownPage, OSError):
                complete = False
                continue
            if page.header.pid != _innermost_pid(pid):  # of its parent, from which it was forked
                page.close()
                continue
            have.add(page.inode)
            known = known or _Known(pid, start_time, _program(pid))
            known.pages.append(page)
        return known, complete

    def close(self) -> None:
        """Close all pages."""
        for known in self._known.values():
            known.close()
        self._known = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            yield int(name)


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


def _start_time(pid: int) -> int:
    """Field 22 of proc_pid_stat(5); the name before it, in parentheses, may contain anything."""
    return int(_read(pid, "stat").rpartition(b")")[2].split()[19])


def _innermost_pid(pid: int) -> int:
    """The pid in the process's own namespace, proc_pid_status(5)."""
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return int(line.split()[-1])
    return pid


def _page_paths(pid: int) -> list[str]:
    """Its open files that are called as pages are."""
    folder, paths = f"/proc/{pid}/fd", []
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        try:
            if os.readlink(path) == _LINK:
                paths.append(path)
        except FileNotFoundError:  # closed meanwhile
            continue
    return paths


def _is_program(pid: int) -> bool:
    """Whether it is a process with a program of its own: threads of the kernel have none, nor have those that ended."""
    try:
        return bool(_read(pid, "cmdline"))
    except OSError:
        return False


def _program(pid: int) -> str:
    """What the process runs: the script or module of an interpreter, else the name of the file."""
    words = [os.fsdecode(word) for word in _read(pid, "cmdline").split(b"\0") if word]
    if not words:
        return ""
    program = os.path.basename(words[0])
    if not program.startswith("python"):
        return program
    for place, word in enumerate(words[1:], 1):
        if word == "-c":
            break
        if word == "-m":
            return words[place + 1] if place + 1 < len(words) else program
        if not word.startswith("-"):
            return os.path.basename(word)
    return program
