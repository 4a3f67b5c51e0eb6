# SPDX-License-Identifier: BSD-3-Clause
"""What the guest's kernel starts from: an archive with busybox, the modules, and what is to be done."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from .tools import GuestError, program

INIT = Path(__file__).with_name("init")


def entry(number: int, name: str, mode: int, content: bytes) -> Iterator[bytes]:
    """One file of a cpio archive in the format that the kernel reads ("newc"; its initramfs documentation has it)."""
    encoded = name.encode() + b"\0"
    # i-node, mode, uid, gid, links, mtime, size, device (4 numbers), length of the name, checksum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
    for part in (head, content):
        yield part
        yield b"\0" * (-len(part) % 4)


def archive(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """The archive of these files: names, and for each its mode and contents."""
    parts: list[bytes] = []
    for number, (name, (mode, content)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], start=1):
        parts.extend(entry(number, name, mode, content))
    return b"".join(parts)


def busybox() -> bytes:
    """The program that is shell and tools of the guest until this machine's file tree is there."""
    path = program("busybox")
    content = path.read_bytes()
    if b"/lib64/ld-linux" in content:
        raise GuestError(f"{path} needs shared libraries: apt-get install busybox-static")
    return content


def script(command: list[str], environment: Mapping[str, str]) -> str:
    """What the guest's shell does in this machine's file tree: the command, in the same folder."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    folder = shlex.quote(os.getcwd())
    return f"cd {folder} || exit 125\nexec {shlex.join(['env', '-i', *variables, *command])}\n"


def initramfs(
    modules: list[tuple[str, bytes]],
    command: list[str],
    environment: Mapping[str, str],
    token: str,
    shares: tuple[Path, ...],
) -> bytes:
    """The archive: `token` marks the guest's notices, `shares` are the folders in which it may write."""
    folder, file, executable = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o644, stat.S_IFREG | 0o755
    files = dict.fromkeys(("bin", "dev", "modules", "proc", "sys"), (folder, b""))
    files["bin/busybox"] = (executable, busybox())
    files["init"] = (executable, INIT.read_bytes())
    files["token"] = (file, token.encode())
    files["shares"] = (file, "".join(f"{share}\n" for share in shares).encode())
    files["command"] = (file, script(command, environment).encode())
    for number, (name, module) in enumerate(modules):
        files[f"modules/{number:03}-{name}"] = (file, module)
    return archive(files)
