# SPDX-License-Identifier: BSD-3-Clause
"""The guest's kernel: Debian's package, downloaded and unpacked into a cache folder, never installed."""

from __future__ import annotations

import lzma
import os
import platform
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .tools import GuestError, output, program

PREFIX = "linux-image-"
# Not those for clouds, whose packages lack drivers, nor unsigned or debugging ones.
VERSION = re.compile(r"\d[\d.+-]*(deb\d+)?-amd64")


def cache_folder() -> Path:
    """``OFIPY_GUEST_CACHE``, else a folder in the user's cache."""
    own = os.environ.get("OFIPY_GUEST_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ofipy-guest"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel package, unpacked."""

    root: Path
    version: str

    @property
    def image(self) -> Path:
        return self.root / "boot" / f"vmlinuz-{self.version}"

    def modules(self, names: list[str]) -> list[tuple[str, bytes]]:
        """These modules and what they need, in the order to load them: names of files and contents, decompressed."""
        modprobe = program("modprobe")
        found: dict[Path, bytes] = {}
        for name in names:
            # Nothing of this machine's own settings.
            settings = ("-C", "/dev/null", "-d", self.root, "-S", self.version)
            for line in output(modprobe, "--show-depends", *settings, name).splitlines():
                kind, _, rest = line.partition(" ")
                if kind == "insmod":
                    path = Path(rest.split()[0])
                    found[path] = found.get(path) or read_module(path)
        return [(path.name.removesuffix(".xz"), module) for path, module in found.items()]


def read_module(path: Path) -> bytes:
    """A module as the kernel loads it: Debian 12's 6.1 has them as they are, later kernels compress them."""
    content = path.read_bytes()
    if path.suffix == ".ko":
        return content
    if path.suffix == ".xz":
        return lzma.decompress(content)
    raise GuestError(f"{path.name} is compressed in a way that this tool does not know")


def order(version: str) -> list[int]:
    """What sorts versions."""
    return [int(number) for number in re.findall(r"\d+", version)]


def newest(versions: list[str]) -> str | None:
    return max((version for version in versions if VERSION.fullmatch(version)), key=order, default=None)


def get_kernel() -> Kernel:
    """The newest kernel of the cache; when there is none, the newest one that apt knows, downloaded."""
    if platform.machine() != "x86_64":
        raise GuestError(f"the guest is an x86-64 machine, and this one is {platform.machine()}")
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    version = newest([folder.name for folder in cache.iterdir()])
    if version is None:
        version = newest(
            [name.removeprefix(PREFIX) for name in output(program("apt-cache"), "pkgnames", PREFIX).split()]
        )
        if version is None:
            raise GuestError(f"apt knows no package {PREFIX}*-amd64: the guest's kernel is one of Debian's")
        download(version, cache)
    return Kernel(cache / version, version)


def download(version: str, cache: Path) -> None:
    """Put the unpacked package into the cache, whole or not at all."""
    depmod = program("depmod")
    with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as folder:
        work = Path(folder)
        try:
            command = ("download", "-qq", "-o", "Acquire::Retries=5")
            output(program("apt-get"), *command, PREFIX + version, folder=work)
        except GuestError as error:
            raise GuestError(f"no kernel package; perhaps `apt-get update` helps: {error}") from None
        root = work / "root"
        output(program("dpkg"), "-x", next(work.glob("*.deb")), root)
        # The package of a system whose /lib is a link has it there only.
        if not (root / "lib").exists():
            (root / "lib").symlink_to("usr/lib")
        # Which module needs which is written down at installation only.
        output(depmod, "-b", root, version)
        try:
            root.rename(cache / version)
        except OSError:
            # Somebody else has put it there meanwhile.
            if not (cache / version).is_dir():
                raise
