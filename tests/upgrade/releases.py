# SPDX-License-Identifier: BSD-3-Clause
"""Releases beside this one, built: ``python -m tests.upgrade.releases last|later`` prints the interpreter that has one.

The last one is the newest tag before this commit. The later one is this commit, but it speaks no version of it.
"""

import re
import shutil
import sys
from pathlib import Path

from tests.commits import FOLDER, build, check_out, commit_of, git

__all__ = ["build_last", "build_later"]

# Until there is a release: the commit before versions were agreed on.
KEPT = "5e78d2f8bf07"
# Where each protocol's version stands, and what a release says there that has left all earlier ones behind.
LATER = {
    "providers/shm/memory/layout.h": [(r"(SHM_(?:OLDEST_)?VERSION) 3$", r"\1 4")],
    "providers/tcp/stream/wire.h": [(r"(TCP_EXTENSION_(?:VERSION|OLDEST)) 1$", r"\1 2")],
    "native/rdm/transfer/packet.h": [(r"(OFPI_RDM_(?:VERSION|OLDEST)) 1$", r"\1 2")],
    "ofipy/jobs/greeting.py": [(r"^VERSIONS = Versions\(1\)$", "VERSIONS = Versions(2)")],
}


def build_last() -> Path:
    """The last release."""
    tags = git("tag", "--list", "v*", "--sort=-version:refname", "--merged", "HEAD~1").split()
    commit = commit_of(tags[0] if tags else KEPT)
    return build(commit, check_out(commit))


def build_later() -> Path:
    """A later release that has left this one behind."""
    source = check_out(commit_of("HEAD"))
    tree = FOLDER / "later" / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(source, tree)
    for name, changes in LATER.items():
        path = tree / name
        text = path.read_text()
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
            assert count, f"{name} has no {pattern}"
        path.write_text(text)
    return build("later", tree)


if __name__ == "__main__":
    print({"last": build_last, "later": build_later}[sys.argv[1]]())
