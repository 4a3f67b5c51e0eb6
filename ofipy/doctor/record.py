# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of a host for ``--root``: exactly what the rules have read of it, in a tar archive.

The archive has the kernel's files with their links, what commands printed (``commands``), the counters of an earlier
moment (``before``), and ``meta.json``.
"""

import io
import json
import os
import platform
import tarfile
import time
from collections.abc import Iterable

import ofipy
from ofipy.host.tree import Files, Folder, Tree

__all__ = ["BEFORE", "META", "RecordingTree", "read_seconds"]

BEFORE = "before"
META = "meta.json"
_Path = tuple[str, ...]


class Recorder:
    """Passes on what another reads, and remembers it."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.contents: dict[_Path, bytes] = {}
        self.links: dict[_Path, str] = {}
        self.folders: set[_Path] = set()

    def read(self, path: _Path) -> bytes | None:
        """Remember the contents."""
        data = self._files.read(path)
        if data is not None:
            self.contents[path] = data
        return data

    def link(self, path: _Path) -> str | None:
        """Remember the target."""
        target = self._files.link(path)
        if target is not None:
            self.links[path] = target
        return target

    def names(self, path: _Path) -> Iterable[str]:
        """Remember that each name is there: a link, or else a folder, whose contents nobody asked for."""
        found = list(self._files.names(path))
        if found:
            self.folders.add(path)
        for name in found:
            if self.link((*path, name)) is None:
                self.folders.add((*path, name))
        return found

    def exists(self, path: _Path) -> bool:
        """Remember that it is there."""
        found = self._files.exists(path)
        if found:
            self.folders.add(path)
        return found

    def move(self, folder: str) -> None:
        """Put all that is remembered below a folder."""
        self.contents = {(folder, *path): data for path, data in self.contents.items()}
        self.links = {(folder, *path): target for path, target in self.links.items()}
        self.folders = {(folder, *path) for path in self.folders}


class RecordingTree(Tree):
    """The host that runs, or one in a folder, with everything that is read from it remembered."""

    def __init__(self, root: str = "/") -> None:
        self._recorder = Recorder(Folder(root))
        super().__init__(root, files=self._recorder)

    def keep(self, file: str, text: str | None, code: int | None) -> None:
        """Remember what a command printed."""
        path = tuple(file.split("/"))
        if text is not None and code is not None:
            self._recorder.contents[path] = text.encode()
            self._recorder.contents[(*path[:-1], path[-1].removesuffix(".out") + ".code")] = b"%d\n" % code

    def move_before(self) -> None:
        """What has been read so far was the earlier moment."""
        self._recorder.move(BEFORE)

    def write(self, file: str, seconds: float) -> None:
        """Write the archive.

        Parameters
        ----------
        file : str
            A new file; compressed as its name says (``.tar``, ``.tar.gz``, ``.tgz``, ``.tar.xz``).
        seconds : float
            Between both moments.
        """
        compression = {".gz": "gz", ".tgz": "gz", ".xz": "xz", ".bz2": "bz2"}.get(
            os.path.splitext(file)[1], ""
        )
        with tarfile.open(file, f"x:{compression}") as archive:  # type: ignore[call-overload]
            self._fill(archive, seconds)

    def pack(self) -> bytes:
        """The archive of one moment, compressed, in memory."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            self._fill(archive, 0.0)
        return packed.getvalue()

    def _fill(self, archive: tarfile.TarFile, seconds: float) -> None:
        """Add everything that was read, and when."""
        meta = {
            "schema": 1,
            "ofipy": ofipy.__version__,
            "host": platform.node(),
            "kernel": platform.release(),
            "time": time.time(),
            "seconds": round(seconds, 3),
        }
        recorder = self._recorder
        contents = recorder.contents | {(META,): json.dumps(meta).encode() + b"\n"}
        for path in sorted(recorder.folders - contents.keys() - recorder.links.keys() - {(), (BEFORE,)}):
            add(archive, path, tarfile.DIRTYPE)
        for path, target in sorted(recorder.links.items()):
            add(archive, path, tarfile.SYMTYPE, target=target)
        for path, data in sorted(contents.items()):
            add(archive, path, tarfile.REGTYPE, data=data)


def add(archive: tarfile.TarFile, path: _Path, kind: bytes, *, data: bytes = b"", target: str = "") -> None:
    """Add a member that belongs to nobody."""
    member = tarfile.TarInfo("/".join(path))
    member.type, member.linkname, member.size = kind, target, len(data)
    member.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    member.mtime = int(time.time())
    archive.addfile(member, io.BytesIO(data))


def read_seconds(tree: Tree) -> float:
    """The time between both moments of a recorded tree; 0: there is one."""
    try:
        meta = json.loads(tree.text(META) or "{}")
        return max(float(meta.get("seconds", 0)), 0.0)
    except (ValueError, TypeError, AttributeError):
        return 0.0
