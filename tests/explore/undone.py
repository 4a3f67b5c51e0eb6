# SPDX-License-Identifier: BSD-3-Clause
"""Undoing repairs in a copy of the tree, and searching for what they repaired.

Each file ``undo/NAME.patch`` undoes one repair. Lines before the patch name it: ``scenario:`` names the scenarios that
search, separated by commas. Seeds are fresh each time; nothing says where the fault is.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.builds import TREE

from .build import FOLDER, Build
from .recorded import record_undone
from .report import Document
from .scenario import CannotRun, format_seed
from .scenarios import list_scenarios
from .search import Failure, Search, draw_seed

__all__ = ["PATCHES", "Undo", "apply_patch", "find_again", "list_undos"]

PATCHES = Path(__file__).with_name("undo")
NOT_COPIED = ("build", "docs", "monitoring", "tests")
"""Folders at the top of the tree that no build needs; of ``tests`` some are copied."""
WORKERS = 2
COPIED_TESTS = ("fake_provider", "rdm_fake_provider", "native", "fuzz")


@dataclass(frozen=True)
class Undo:
    """A patch, and where what it brings back shows."""

    name: str
    path: Path
    scenarios: tuple[str, ...]


def list_undos(wanted: str) -> list[Undo]:
    """The patch of this name, or all of them in order.

    Raises
    ------
    CannotRun
        If there is none of that name.
    """
    found = []
    for path in sorted(PATCHES.glob("*.patch")):
        lines = [line for line in path.read_text().splitlines() if line.startswith("scenario:")]
        names = tuple(name.strip() for name in lines[0].removeprefix("scenario:").split(",")) if lines else ()
        if wanted in ("all", path.stem):
            found.append(Undo(path.stem, path, names))
    if not found:
        known = ", ".join(sorted(path.stem for path in PATCHES.glob("*.patch")))
        raise CannotRun(f"there is no undo {wanted}; there are {known}")
    # Those of Python first, of which nothing is built: between them nothing changes but modules.
    return sorted(
        found, key=lambda undo: any(not name.endswith(".py") for name in read_hunks(undo.path.read_text()))
    )


def read_hunks(text: str) -> dict[str, list[tuple[str, str]]]:
    """What a patch replaces by what, by file: the lines of each hunk before and behind it, with their context."""
    hunks: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("+++ "):
            name = line[4:].strip().partition("/")[2]
        elif line.startswith("@@ ") and name:
            hunks.setdefault(name, []).append(("", ""))
        elif name in hunks and line[:1] in " +-" and not line.startswith("--- "):
            before, behind = hunks[name][-1]
            before += line[1:] if line[0] != "+" else ""
            behind += line[1:] if line[0] != "-" else ""
            hunks[name][-1] = before, behind
    return hunks


def apply_patch(tree: Path, path: Path) -> None:
    """Apply a patch to a tree. Each hunk must be there once; where, does not matter.

    Raises
    ------
    CannotRun
        If it does not apply; then nothing has changed.
    """
    changed = {}
    for name, hunks in read_hunks(path.read_text()).items():
        text = (tree / name).read_text()
        for number, (before, behind) in enumerate(hunks, start=1):
            if text.count(before) != 1:
                raise CannotRun(
                    f"{path.name} does not apply: hunk {number} is {text.count(before)} times in {name}"
                )
            text = text.replace(before, behind)
        changed[tree / name] = text
    if not changed:
        raise CannotRun(f"{path.name} changes nothing")
    for file, text in changed.items():
        file.write_text(text)


def list_copied() -> list[str]:
    """What of the tree a build needs: all files at its top, and most folders."""
    top = [path.name for path in TREE.iterdir() if path.name not in NOT_COPIED and path.name[0] not in "._"]
    return [*sorted(top), *(f"tests/{name}" for name in COPIED_TESTS)]


class Copy:
    """A copy of the tree in which one patch at a time is applied, so that little is built again."""

    def __init__(self) -> None:
        self.build = Build(FOLDER / "undone" / "tree", FOLDER / "undone")

    def restore(self) -> None:
        """Make the copy as the tree is."""
        for name in list_copied():
            self._update(TREE / name, self.build.tree / name)

    def _update(self, source: Path, target: Path) -> None:
        """Copy what differs; what stays keeps its time, and is not built again."""
        if source.is_dir():
            present = {path.name for path in source.iterdir() if path.name != "__pycache__"}
            for path in target.iterdir() if target.is_dir() else ():
                if path.name not in present:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            target.mkdir(parents=True, exist_ok=True)
            for name in present:
                self._update(source / name, target / name)
        elif not target.exists() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def apply(self, path: Path) -> Build:
        """Apply a patch in place of the last one. Returns a build of the copy, built when it is needed."""
        self.restore()
        apply_patch(self.build.tree, path)
        return Build(self.build.tree, self.build.folder)


def search_undone(undo: Undo, build: Build, seconds: float) -> tuple[Failure | None, int]:
    """Search until something is found or the time is over. Returns it, and the seed."""
    seed = draw_seed()
    # Twice, for two searches beside each other: an undo may name a single scenario.
    scenarios = [
        scenario
        for _ in range(WORKERS)
        for scenario in list_scenarios(build)
        if not undo.scenarios or scenario.name in undo.scenarios
    ]
    if not scenarios:
        raise CannotRun(f"{undo.path.name} names no scenario: {', '.join(undo.scenarios)}")
    try:
        for scenario in scenarios:
            scenario.prepare()
        search = Search(scenarios, seed, stops_at_failure=True)
        search.run(seconds, WORKERS)
    finally:
        for scenario in scenarios:
            scenario.close()
    return (search.failures[0] if search.failures else None), seed


def find_again(
    undos: Sequence[Undo], seconds: float, record: Path | None = None
) -> list[tuple[Document, Failure | None]]:
    """Undo each repair, and search for so long at most. Returns the rows of the report, with what was found.

    Traces of what was found are recorded in the folder `record`, if there is one.
    """
    copy = Copy()
    result: list[tuple[Document, Failure | None]] = []
    for undo in undos:
        begin = time.monotonic()
        seed, failure, why = draw_seed(), None, "not found"
        try:
            build = copy.apply(undo.path)
            failure, seed = search_undone(undo, build, seconds)
        except CannotRun as error:
            why = str(error)
        row: Document = {
            "name": undo.name,
            "found": failure is not None,
            "seconds": round(time.monotonic() - begin, 1),
            "seed": format_seed(failure.seed, failure.number) if failure else format_seed(seed),
        }
        verdict = f"{failure.scenario}: {failure.verdict}" if failure else why
        print(f"{undo.name}: {verdict} ({row['seconds']} s)", flush=True)
        if failure and record and not record_undone(record / f"{undo.name}.json", failure, build):
            print(f"{undo.name}: no part of this trace fails without the repair and is reached with it")
        result.append((row, failure))
    return result
