# SPDX-License-Identifier: BSD-3-Clause
"""Commits of the history, each built beside the others under ``build/``.

Nothing here imports ofipy: ``python -m`` has the tree before the installed packages, and the tree's own is not built.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

from .builds import TREE, install, make_environment

__all__ = ["FOLDER", "build", "check_out", "commit_of", "git"]

FOLDER = TREE / "build" / "paired"


def git(*arguments: str) -> str:
    """What git says about this tree."""
    command = ["git", "-C", str(TREE), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def commit_of(base: str) -> str:
    """The commit of that name.

    Raises
    ------
    SystemExit
        When the history here does not have it, with the command that fetches it.
    """
    with contextlib.suppress(subprocess.CalledProcessError):
        return git("rev-parse", "--quiet", "--verify", f"{base}^{{commit}}")
    shallow = git("rev-parse", "--is-shallow-repository") == "true"
    remedy = "git fetch --unshallow origin" if shallow else f"git fetch origin {base}"
    sys.exit(f"the history here has no {base}; `{remedy}` fetches it")


def check_out(commit: str) -> Path:
    """The files of a commit, in a folder of their own."""
    tree = FOLDER / commit / "tree"
    if not tree.exists():
        partial = tree.with_name("partial")
        partial.mkdir(parents=True, exist_ok=True)
        with subprocess.Popen(["git", "-C", str(TREE), "archive", commit], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(partial)], stdin=archive.stdout, check=True)
        partial.rename(tree)
    return tree


def build(name: str, source: Path) -> Path:
    """Build a tree as it is shipped. Returns the interpreter that has it."""
    print(f"building {name}", file=sys.stderr)
    python = make_environment(FOLDER / name / "environment")
    install(python, source, build=FOLDER / name / "build")
    return python
