# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's files of a host, or of a recorded one: everything that operators' commands read comes through here.

A file that is missing, unreadable or without a value is absent: None, or an empty list. Links are followed within the
root, so a recorded tree never reads the files of this host.
"""

import errno
import io
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

__all__ = ["Files", "Folder", "Tree", "open_files"]

_LINKS = 40  # followed in one path, as the kernel has it (path_resolution(7))
_LONGEST = 1 << 20  # bytes of one file; the kernel's are far shorter
_LARGEST = 256 << 20  # bytes of an archive's files together
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}|0x[0-9a-fA-F]{1,16}")
_NOTHING = ("N/A", "Unknown", "<unknown>")
_DAMAGED: tuple[type[Exception], ...] = (tarfile.TarError, EOFError, zlib.error, ValueError)

# An interpreter may be built without lzma: tarfile reads no .tar.xz then.
with suppress(ModuleNotFoundError):
    import lzma

    _DAMAGED = (*_DAMAGED, lzma.LZMAError)


class Files(Protocol):
    """Where files lie. A path is the names from the root on; no part but the last is a link."""

    def read(self, path: tuple[str, ...]) -> bytes | None:
        """The contents of a regular file."""
        ...

    def link(self, path: tuple[str, ...]) -> str | None:
        """The target of a link, as it is written."""
        ...

    def names(self, path: tuple[str, ...]) -> Iterable[str]:
        """What a folder has; nothing where there is no folder."""
        ...

    def exists(self, path: tuple[str, ...]) -> bool:
        """Whether there is a file or folder."""
        ...


class Folder:
    """Files below a folder of this host."""

    def __init__(self, root: str) -> None:
        self._root = root

    def _path(self, path: tuple[str, ...]) -> str:
        return os.path.join(self._root, *path)

    def read(self, path: tuple[str, ...]) -> bytes | None:
        """Read without waiting: a pipe or a terminal in a recorded tree is no file."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path(path), flags)
        except (OSError, ValueError):
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            pieces, left = [], _LONGEST
            while left > 0 and (piece := os.read(descriptor, left)):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def link(self, path: tuple[str, ...]) -> str | None:
        """The target, None where it is no link."""
        try:
            return os.readlink(self._path(path))
        except (OSError, ValueError):
            return None

    def names(self, path: tuple[str, ...]) -> Iterable[str]:
        """Everything in the folder."""
        try:
            return os.listdir(self._path(path))
        except (OSError, ValueError):
            return ()

    def exists(self, path: tuple[str, ...]) -> bool:
        """Whether it is there; what may not be searched is not."""
        return os.path.lexists(self._path(path))


class Below:
    """The files below a folder of others, as if it were the root."""

    def __init__(self, files: Files, folder: tuple[str, ...]) -> None:
        self._files, self._folder = files, folder

    def read(self, path: tuple[str, ...]) -> bytes | None:
        """The contents of a regular file."""
        return self._files.read((*self._folder, *path))

    def link(self, path: tuple[str, ...]) -> str | None:
        """The target; an absolute one begins at this folder."""
        return self._files.link((*self._folder, *path))

    def names(self, path: tuple[str, ...]) -> Iterable[str]:
        """What the folder has."""
        return self._files.names((*self._folder, *path))

    def exists(self, path: tuple[str, ...]) -> bool:
        """Whether it is there."""
        return self._files.exists((*self._folder, *path))


class Archive:
    """Files of a tar archive, in a file or in memory. It is read once into memory and never unpacked."""

    def __init__(self, file: str, packed: bytes | None = None, most: int = _LARGEST) -> None:
        self._contents: dict[tuple[str, ...], bytes] = {}
        self._links: dict[tuple[str, ...], str] = {}
        self._folders: dict[tuple[str, ...], set[str]] = {(): set()}
        with tarfile.open(file, fileobj=io.BytesIO(packed) if packed is not None else None) as archive:
            left = most
            for member in archive:
                left -= self._add(archive, member)
                if left < 0:
                    raise OSError(errno.EFBIG, f"more than {most >> 20} MiB in the archive", file)

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> int:
        """Add one member to the index. Returns how many bytes of memory it takes."""
        path = tuple(part for part in member.name.split("/") if part not in ("", "."))
        if not path or ".." in path:
            return 0
        if member.issym():
            self._links[path] = member.linkname
        elif member.islnk():
            same = tuple(part for part in member.linkname.split("/") if part not in ("", "."))
            self._contents[path] = self._contents.get(same, b"")
        elif member.isfile():
            file = archive.extractfile(member)
            self._contents[path] = file.read(_LONGEST) if file is not None else b""
        elif member.isdir():
            self._folders.setdefault(path, set())
        else:
            return 0
        for depth in range(len(path)):
            self._folders.setdefault(path[:depth], set()).add(path[depth])
        return len(self._contents.get(path, b"")) + len(member.name)

    def read(self, path: tuple[str, ...]) -> bytes | None:
        """The contents at most a mebibyte long."""
        return self._contents.get(path)

    def link(self, path: tuple[str, ...]) -> str | None:
        """The target as the archive has it."""
        return self._links.get(path)

    def names(self, path: tuple[str, ...]) -> Iterable[str]:
        """Members whose path begins with this folder, each next part once."""
        return self._folders.get(path, ())

    def exists(self, path: tuple[str, ...]) -> bool:
        """Whether the archive has it, or something below it."""
        return path in self._contents or path in self._folders or path in self._links


def open_files(root: str, packed: bytes | None = None, most: int = _LARGEST) -> Files:
    """A folder, or a tar archive that may be compressed.

    Parameters
    ----------
    root : str
        The folder or file, or the name of an archive in memory.
    packed : bytes, optional
        An archive in memory.
    most : int, optional
        Bytes of an archive's files together.

    Raises
    ------
    OSError
        When it is neither, cannot be read, or is damaged.
    """
    if packed is None and os.path.isdir(root):
        return Folder(root)
    try:
        return Archive(root, packed, most)
    except _DAMAGED as error:
        raise OSError(
            errno.EINVAL, f"no folder, and no tar archive that can be read ({error})", root
        ) from error


class Tree:
    """Files of the kernel below a root.

    Parameters
    ----------
    root : str
        A folder or a tar archive with ``sys`` and ``proc``; default: this host.
    files : Files, optional
        Where the files lie, if not in `root` itself.

    Raises
    ------
    OSError
        When the root itself cannot be opened. No method raises.
    """

    def __init__(self, root: str = "/", *, files: Files | None = None) -> None:
        self.root = root
        self._files = files if files is not None else open_files(root)

    def below(self, folder: str) -> "Tree":
        """The tree whose root is a folder of this one. It is never live."""
        parts = tuple(part for part in folder.split("/") if part)
        return Tree(os.path.join(self.root, *parts), files=Below(self._files, parts))

    def keep(self, file: str, text: str | None, code: int | None) -> None:
        """Note what a command printed, for trees that are recorded. This one forgets it."""

    @property
    def is_live(self) -> bool:
        """Whether it is this host as it is now."""
        return os.path.realpath(self.root) == "/"

    def text(self, path: str) -> str | None:
        """What is in a file, without the end of its last line.

        Characters that no text has are shown as question marks: nothing of a tree steers a terminal.
        """
        where = self._resolve(path)
        data = self._files.read(where) if where is not None else None
        if data is None:
            return None
        # tar pads the kernel's files with zeros, because they are shorter than they say.
        text = data.rstrip(b"\0").decode("utf-8", "replace").strip()
        return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)

    def line(self, path: str) -> str | None:
        """The first line of a file, None also where it is empty or says that there is no value."""
        line = (self.text(path) or "").partition("\n")[0].strip()
        return None if not line or line.startswith(_NOTHING) else line

    def number(self, path: str) -> int | None:
        """The number that is in a file, decimal or with 0x; None where there is no number alone."""
        line = self.line(path) or ""
        return int(line, 0 if line.startswith("0x") else 10) if _NUMBER.fullmatch(line) else None

    def names(self, path: str) -> list[str]:
        """What is in a folder, numbers in their order: mlx5_2 before mlx5_10."""
        where = self._resolve(path)
        found = self._files.names(where) if where is not None else ()
        return sorted((name for name in found if name.isprintable()), key=by_number)

    def place(self, path: str) -> str | None:
        """Where a file or folder lies when all links are followed, from the root on; None where it is missing."""
        where = self._resolve(path)
        return "/".join(where) if where is not None and self._files.exists(where) else None

    def _resolve(self, path: str) -> tuple[str, ...] | None:
        """Follow all links, without leaving the root. None: more links than the kernel follows."""
        waiting = path.split("/")[::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                del done[-1:]
                continue
            target = self._files.link((*done, part))
            if target is None:
                done.append(part)
                continue
            links += 1
            if links > _LINKS:
                return None
            if target.startswith("/"):
                done = []
            waiting += target.split("/")[::-1]
        return tuple(done)


def by_number(name: str) -> list[tuple[int, int, str]]:
    """What names are sorted by: their numbers as numbers."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part[:18]), part) if part[0] in "0123456789" else (1, 0, part) for part in parts]
