# SPDX-License-Identifier: BSD-3-Clause
"""What it takes to connect: ``python -m tests.unit.connecting``.

The files and their owners are those that ``docs/explanation/meet.md`` names. Printed are the lines of each owner, the
enumerations of connection states, and the states that more than one enumeration has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).parents[2]
PAGE = TREE / "docs/explanation/meet.md"
AIM = 7500
"""Lines that should suffice."""
LINES = 12_800
"""More than these are a finding. Lower the number with the lines."""
LATER = (
    "native/proof/key",
    "native/proof/keyring",
    "native/proof/proof",
    "providers/tcp/connection/key",
    "providers/tcp/connection/refusal",
    "providers/tcp/connection/secure",
    "providers/tcp/connection/source",
    "providers/tcp/connection/version",
    "providers/verbs/packet/challenge",
    "providers/verbs/packet/key",
    "providers/verbs/packet/prove",
)
"""Sources and headers that are later than the aim: several keys, encryption, versions, proofs over verbs."""
REPEATED = {"ACCEPTED", "CONNECTING", "OVER", "REQUESTED", "UP"}
"""Names of states that more than one enumeration has; the page says what each means."""

_ROW = re.compile(r"^\| (\w+) \| (`[^|]*) \| (?:`enum (\w+)` in `([^`]+)` )?\|$", re.MULTILINE)
_STATES = re.compile(r"\benum (\w+_state)\s*\{(.*?)\}", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Owner:
    """One row of the page.

    Attributes
    ----------
    name : str
        Who owns the files.
    files : tuple of Path
        The sources of the row and their headers; all of a folder.
    enumeration : str or None
        Name of its enumeration of states.
    header : Path or None
        Where that is.
    """

    name: str
    files: tuple[Path, ...]
    enumeration: str | None
    header: Path | None

    @property
    def lines(self) -> int:
        """Lines of all files."""
        return count_lines(self.files)


def owners(page: str, tree: Path = TREE) -> list[Owner]:
    """The rows of the page's table, with the files that are there."""
    found = []
    for name, named, enumeration, header in _ROW.findall(page):
        files: set[Path] = set()
        for place in re.findall(r"`([^`]+)`", named):
            path = tree / place
            matched = path.glob("*.[ch]") if path.is_dir() else (path, path.with_suffix(".h"))
            present = [each for each in matched if each.is_file()]
            if not present:
                raise ValueError(f"{name}: no file is {place}")
            files.update(present)
        found.append(
            Owner(name, tuple(sorted(files)), enumeration or None, tree / header if header else None)
        )
    return found


def count_lines(files: Iterable[Path]) -> int:
    """Lines of all files."""
    return sum(len(path.read_text().splitlines()) for path in files)


def later(rows: list[Owner]) -> list[Path]:
    """The files that are later than the aim."""
    wanted = {TREE / name for name in LATER}
    return [path for row in rows for path in row.files if path.with_suffix("") in wanted]


def enumerations(path: Path) -> dict[str, list[str]]:
    """The enumerations of states of a file, each with its states without their prefix."""
    found = {}
    for name, body in _STATES.findall(path.read_text()):
        members = [
            member.split("=")[0].strip() for member in _COMMENT.sub("", body).split(",") if member.strip()
        ]
        found[name] = [member.removeprefix(_common_prefix(members)) for member in members]
    return found


def _common_prefix(names: list[str]) -> str:
    """What all names begin with, in whole words."""
    words = [name.split("_") for name in names]
    shared = len([1 for same in zip(*words, strict=False) if len(set(same)) == 1])
    return "".join(f"{word}_" for word in words[0][:shared])


def states(rows: list[Owner]) -> dict[str, tuple[str, list[str]]]:
    """Each enumeration of the page: its owner and its states."""
    return {
        row.enumeration: (row.name, enumerations(row.header)[row.enumeration])
        for row in rows
        if row.enumeration and row.header
    }


def unnamed(rows: list[Owner]) -> list[str]:
    """Enumerations of states in the files that connect, which the page does not name."""
    named = {row.enumeration for row in rows}
    return sorted(
        f"{path.relative_to(TREE)}: enum {name}"
        for row in rows
        for path in row.files
        for name in enumerations(path)
        if name not in named
    )


def repeated(rows: list[Owner]) -> dict[str, list[str]]:
    """States that several enumerations have, with these."""
    users: dict[str, list[str]] = defaultdict(list)
    for name, (_, members) in states(rows).items():
        for member in members:
            users[member].append(name)
    return {state: names for state, names in sorted(users.items()) if len(names) > 1}


def main() -> None:
    rows = owners(PAGE.read_text())
    total = sum(row.lines for row in rows)
    print("lines of the files that connect:")
    for row in rows:
        print(f"  {row.name:<8}{row.lines:>8,}  in {len(row.files)} files")
    print(f"  {'all':<8}{total:>8,}  at most {LINES:,}; the aim is {AIM:,}")
    print(f"  of these {count_lines(later(rows)):,} in {len(LATER)} sources are later than the aim")
    print("\nenumerations of states:")
    for name, (owner, members) in states(rows).items():
        print(f"  {owner:<8}{name}: {', '.join(members)}")
    print("\nstates of several enumerations:")
    for state, names in repeated(rows).items():
        print(f"  {state}: {', '.join(names)}")
    for line in unnamed(rows):
        print(f"not on the page: {line}")


if __name__ == "__main__":
    main()
