# SPDX-License-Identifier: BSD-3-Clause
"""Other releases beside this one: the last one, and a later one that speaks no version of this one."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
sys.path.append(str(TREE))

from tests.paired import FOLDER, build, check_out, commit_of, git  # noqa: E402

# Until there is a release: the commit before versions were agreed on.
KEPT = "5e78d2f8bf07"
# Where each protocol's version stands, and what a release says there that has left all earlier ones behind.
LATER = {
    "providers/shm/memory/layout.h": [(r"(SHM_(?:OLDEST_)?VERSION) 3$", r"\1 4")],
    "providers/tcp/stream/wire.h": [(r"(TCP_EXTENSION_(?:VERSION|OLDEST)) 1$", r"\1 2")],
    "native/rdm/transfer/packet.h": [(r"(OFPI_RDM_(?:VERSION|OLDEST)) 1$", r"\1 2")],
    "ofipy/jobs/greeting.py": [(r"^VERSIONS = Versions\(1\)$", "VERSIONS = Versions(2)")],
}


@pytest.fixture(scope="session")
def last() -> Path:
    """The interpreter that has the last release."""
    tags = git("tag", "--list", "v*", "--sort=-version:refname", "--merged", "HEAD~1").split()
    commit = commit_of(tags[0] if tags else KEPT)
    return build(commit, check_out(commit))


@pytest.fixture(scope="session")
def later() -> Path:
    """The interpreter that has a release which speaks later versions alone."""
    if not os.environ.get("OFIPY_STRESS"):
        pytest.skip("builds a later ofipy: in the full profile alone (OFIPY_STRESS)")
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
