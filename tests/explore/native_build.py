# SPDX-License-Identifier: BSD-3-Clause
"""The build of the programs whose threads are scheduled: ofipy's C of a tree, with the scheduler's points in it.

Ninja builds it from the sources themselves: neither the tree's build nor its C know of the scheduler. Each file of
ofipy's is compiled with ``native/points.h`` before it.
"""

import os
import re
import subprocess
from pathlib import Path

from tests.builds import TREE

from .build import Build, tool_path
from .scenario import CannotRun

__all__ = ["build_programs", "list_programs"]

NATIVE = TREE / "tests" / "explore" / "native"
CORE = ("native/src", "native/hooks", "native/link", "native/agreement", "native/schedule", "native/meet")
CORE_MORE = ("native/proof", "native/address", "native/rdm")
PROVIDERS = {
    "fake": "tests/fake_provider/ofipy_fake_provider",
    "rdmfake": "tests/rdm_fake_provider/ofipy_rdm_fake_provider",
    "shm": "providers/shm",
    "tcp": "providers/tcp",
}
FLAGS = (
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-DOFP_CHECKS",
    "-O1",
    "-g",
    "-fno-pie",
    "-pthread",
    "-Wall",
    "-Wextra",
)
RULES = """\
cc = {compiler}
flags = {flags}
rule compile
  command = $cc $flags $more -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = $cc -no-pie -pthread -rdynamic -o $out $in -ldl
"""


def _list_sources(tree: Path) -> list[tuple[Path, str]]:
    """Each file of C, and its own flags."""
    points = f"-include {NATIVE / 'points.h'}"
    include = f"-I{tree / 'native' / 'include'} -I{tree / 'native' / 'src'} -I{tree / 'native'}"
    found = [
        (path, f"{points} {include}")
        for folder in (*CORE, *CORE_MORE)
        for path in sorted((tree / folder).rglob("*.c"))
    ]
    for name, folder in PROVIDERS.items():
        entry = f"-Dofp_provider_entry={name}_provider_entry"
        own = f"{points} -I{tree / folder} {include} {entry}"
        found += [(path, own) for path in sorted((tree / folder).rglob("*.c"))]
    ours = (*NATIVE.glob("schedule*.c"), *(NATIVE / "programs").glob("*.c"))
    return found + [(path, f"{include} -I{tree} -Werror") for path in sorted(ours)]


def list_programs() -> list[str]:
    """The programs, each with each provider that it runs over: ``two-takers/shm``."""
    table = re.compile(r'^const struct program program_\w+ = \{"([\w-]+)", "([\w,-]+)"', re.MULTILINE)
    found = [
        f"{name}/{carrier}"
        for path in sorted((NATIVE / "programs").glob("*.c"))
        for name, carriers in table.findall(path.read_text())
        for carrier in carriers.split(",")
    ]
    if not found:
        raise CannotRun(f"{NATIVE / 'programs'} has no program")
    return found


def _is_as_here(path: Path, tree: Path) -> bool:
    """Whether a file of a copy is that of the calling tree."""
    here = TREE / path.relative_to(tree)
    return here.exists() and here.read_bytes() == path.read_bytes()


def _find_reused(build: Build) -> Path | None:
    """The folder of the calling tree's build, whose objects serve a copy too unless a header differs."""
    if build.tree == TREE:
        return None
    folders = (*CORE, *CORE_MORE, "native/include", *PROVIDERS.values())
    headers = [path for folder in folders for path in (build.tree / folder).rglob("*.h")]
    return build_programs(Build()).parent if all(_is_as_here(path, build.tree) for path in headers) else None


def build_programs(build: Build) -> Path:
    """The server of the programs over the build's tree; only what has changed is compiled again.

    Raises
    ------
    CannotRun
        If it cannot be built.
    """
    folder, reused = build.folder / "schedules", _find_reused(build)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [RULES.format(compiler=os.environ.get("CC", "cc"), flags=" ".join(FLAGS))]
    objects = []
    for path, flags in _list_sources(build.tree):
        root = TREE if path.is_relative_to(NATIVE) else build.tree
        name = f"objects/{path.relative_to(root)}.o"
        if reused and _is_as_here(path, root):
            objects.append(str(reused / name))
            continue
        objects.append(name)
        lines.append(f"build {name}: compile {path}\n  more = {flags}\n")
    lines.append(f"build programs: link {' '.join(objects)}\n")
    (folder / "build.ninja").write_text("".join(lines))
    done = subprocess.run(
        ["ninja", "-C", str(folder)],
        env={**os.environ, "PATH": tool_path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CannotRun(f"the programs of {build.tree} cannot be built:\n{done.stdout[-4000:]}")
    return folder / "programs"
