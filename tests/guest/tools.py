# SPDX-License-Identifier: BSD-3-Clause
"""The programs of this machine that the harness uses, and the one way in which it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# Each with Debian's package.
PROGRAMS = {
    "apt-cache": "apt",
    "apt-get": "apt",
    "busybox": "busybox-static",
    "depmod": "kmod",
    "dpkg": "dpkg",
    "modprobe": "kmod",
    "qemu-system-x86_64": "qemu-system-x86",
    "setpriv": "util-linux",
}
# Where a user's PATH does not lead: depmod, modprobe.
SYSTEM_FOLDERS = ("/usr/sbin", "/sbin")


class GuestError(Exception):
    """The guest could not be made, or came to nothing; the text says what to do."""


def find(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_FOLDERS)))


def obstacle() -> str | None:
    """What is not installed, and how to install it; None if everything is there."""
    missing = [name for name in PROGRAMS if find(name) is None]
    if not missing:
        return None
    packages = sorted({PROGRAMS[name] for name in missing})
    return f"not installed: {', '.join(missing)} (apt-get install {' '.join(packages)})"


def program(name: str) -> Path:
    """Where it is."""
    found = find(name)
    if found is None:
        raise GuestError(obstacle())
    return Path(found)


def output(*command: str | Path, folder: Path | None = None) -> str:
    """What it prints; an error with its complaint if it fails."""
    result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        complaint = result.stderr.strip() or f"exit status {result.returncode}"
        raise GuestError(f"{' '.join(map(str, command))}: {complaint}")
    return result.stdout
