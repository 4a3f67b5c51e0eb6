# SPDX-License-Identifier: BSD-3-Clause
"""Compare the machine code of two commits, object by object: ``python -m tests.objects OLD [NEW]``.

A commit that only renames leaves the code of every object as it was. Both commits are built alike (release, gcc; the
core, the providers, and the sources of ``ofipy/requests``) into ``build/objects``. Compared are the bytes of the
sections ``.text`` and ``.text.*`` of each object, by its place in the build; an object whose place is gone is searched
by its content. Bytes do not show which function is called, so the references are compared too: each name of OLD must
stand for one name of NEW everywhere. Without NEW it is the working tree, as far as git knows its files. The exit
status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import shlex
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

EXTENSION = "ofipy/requests"


# Objects


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a section whose value the linker fills in."""

    section: str
    offset: int
    kind: int
    name: str  # of a global symbol; empty: a place of this object
    place: tuple[str, int]  # section and offset of code of this object; empty: data, whose layout may differ


@dataclass(frozen=True, slots=True)
class Object:
    """What is compared of an object."""

    code: tuple[bytes, ...]  # of the sections .text and .text.*, in their order
    references: tuple[Reference, ...]
    defined: tuple[tuple[int, int, str], ...]  # section, offset and name of each global function


def read_object(data: bytes) -> Object:
    """Parse an object for a 64-bit little-endian ELF machine."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF object of 64 bits, little-endian")
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(count)]

    def text_at(table: int, position: int) -> str:
        start = headers[table][4] + position
        return data[start : data.index(b"\0", start)].decode()

    def content(index: int) -> bytes:
        return data[headers[index][4] : headers[index][4] + headers[index][5]]

    sections = [text_at(names_at, header[0]) for header in headers]
    code = [i for i, name in enumerate(sections) if is_code(name) and headers[i][1] == 1]
    # The place of a section of code among the others: its name has a function's where each has its own.
    order = {index: f"code {place}" for place, index in enumerate(code)}
    references, defined = [], []
    for index, header in enumerate(headers):
        if header[1] == 2:  # SHT_SYMTAB
            for name, info, _, home, value, _ in struct.iter_unpack("<IBBHQQ", content(index)):
                if home in order and info >> 4 and info & 15 == 2:
                    defined.append((code.index(home), value, text_at(header[6], name)))
        if header[1] != 4 or not sections[header[7]].startswith((".text", ".data")):  # SHT_RELA
            continue
        symbols = headers[header[6]]
        for where, info, addend in struct.iter_unpack("<QQq", content(index)):
            name, bind, _, home, value, _ = struct.unpack_from(
                "<IBBHQQ", data, symbols[4] + 24 * (info >> 32)
            )
            local = not bind >> 4
            references.append(
                Reference(
                    order.get(header[7], sections[header[7]]),
                    where,
                    info & 0xFFFFFFFF,
                    "" if local else text_at(symbols[6], name),
                    (order[home], value + addend) if local and home in order else ("", 0),
                )
            )
    references.sort(key=lambda each: (each.section, each.offset))
    return Object(tuple(content(index) for index in code), tuple(references), tuple(sorted(defined)))


def is_code(section: str) -> bool:
    return section == ".text" or section.startswith(".text.")


# Comparing


def compare(old: dict[str, Object], new: dict[str, Object]) -> list[str]:
    """The differences between two builds; each begins with the place of an object."""
    found = []
    pairs = {place: place for place in old.keys() & new.keys()}
    missing, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    for place in missing:
        match = next((each for each in added if new[each].code == old[place].code), None)
        if match is None:
            found.append(f"{place}: no object of NEW has this code")
        else:
            added.remove(match)
            pairs[place] = match
    found += [f"{place}: only in NEW" for place in added]
    # What each global name of OLD is called in NEW, and where that was seen; and the reverse.
    there: dict[str, tuple[str, str]] = {}
    back: dict[str, tuple[str, str]] = {}
    for place, match in sorted(pairs.items()):
        shown = place if place == match else f"{place} -> {match}"
        if old[place].code != new[match].code:
            found.append(f"{shown}: {code_difference(old[place].code, new[match].code)}")
            continue
        if [each[:2] for each in old[place].defined] != [each[:2] for each in new[match].defined]:
            found.append(f"{shown}: other functions are global")
        else:
            names = zip(old[place].defined, new[match].defined, strict=True)
            found += renamed(shown, ((was[2], now[2]) for was, now in names), there, back)
        before, after = old[place].references, new[match].references
        if [(*each.place, each.section, each.offset, each.kind) for each in before] != [
            (*each.place, each.section, each.offset, each.kind) for each in after
        ]:
            found.append(f"{shown}: the same code refers to other places of the object")
        else:
            both = zip(before, after, strict=True)
            found += renamed(shown, ((was.name, now.name) for was, now in both), there, back)
    return found


def code_difference(old: tuple[bytes, ...], new: tuple[bytes, ...]) -> str:
    if len(old) != len(new):
        return f"{len(old)} sections of code, {len(new)} in NEW"
    was, now = next((was, now) for was, now in zip(old, new, strict=True) if was != now)
    at = next((i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
    return f"the code differs from byte {at:#x} on ({len(was)} bytes, {len(now)} in NEW)"


def renamed(
    shown: str,
    names: Iterator[tuple[str, str]],
    there: dict[str, tuple[str, str]],
    back: dict[str, tuple[str, str]],
) -> Iterator[str]:
    """Names that stand for different names at different places."""
    for was, now in names:
        if bool(was) != bool(now):
            yield f"{shown}: {was or now} is global in one of the two only"
        elif was:
            known, where = there.setdefault(was, (now, shown))
            source, origin = back.setdefault(now, (was, shown))
            if known != now:
                yield f"{shown}: {was} is {now} here, and {known} in {where}"
            elif source != was:
                yield f"{shown}: {now} was {was} here, and {source} in {origin}"


# Building


def git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(f"git {shlex.join(arguments)} failed")
    return ran.stdout.strip()


def commit_of(name: str | None) -> str:
    """The commit of a name; without one a commit, of no branch, of the files as they are now."""
    return (
        git("rev-parse", "--verify", f"{name}^{{commit}}")
        if name
        else git("stash", "create") or git("rev-parse", "HEAD")
    )


def objects_of(commit: str, folder: Path) -> dict[str, Object]:
    """Build a commit, unless it was built before, and read its objects."""
    # Folders of one length, so that nothing can depend on it.
    home = folder / commit
    tree, build, done = home / "tree", home / "build", home / "done"
    if not done.exists():
        print(f"building {commit[:12]}", file=sys.stderr)
        tree.mkdir(parents=True, exist_ok=True)
        with subprocess.Popen(["git", "archive", commit], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(tree)], stdin=archive.stdout, check=True)
        build_core(tree, build)
        build_extension(tree, build / EXTENSION)
        done.touch()
    return {
        path.relative_to(build).as_posix(): read_object(path.read_bytes())
        for path in sorted(build.rglob("*.o"))
    }


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "gcc"))


def build_core(tree: Path, build: Path) -> None:
    """The core and the providers, by meson."""
    flags = f"{os.environ.get('CFLAGS', '')} -ffile-prefix-map={tree}=."
    environment = {**os.environ, "CC": shlex.join(compiler()), "CFLAGS": flags.strip()}
    fresh = (
        []
        if (build / "build.ninja").exists()
        else ["meson", "setup", "-Dpython=false", "-Dbuildtype=release"]
    )
    for command in ([*fresh, str(build), str(tree)] if fresh else [], ["ninja", "-C", str(build)]):
        if command:
            ran = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            if ran.returncode:
                sys.exit(f"{ran.stdout}\n{shlex.join(command)} failed")


def build_extension(tree: Path, build: Path) -> None:
    """The sources of the extension module, compiled as for the wheel and not linked."""
    import numpy

    source = tree / EXTENSION
    include = [
        source,
        tree / "native/include",
        Path(sysconfig.get_path("include")),
        Path(numpy.get_include()),
    ]
    flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-DNDEBUG",
        "-DPy_LIMITED_API=0x030b0000",
        "-O3",
        "-fPIC",
        "-fvisibility=hidden",
        "-w",
        "-c",
    ]
    flags += [f"-ffile-prefix-map={tree}=.", *(f"-I{each}" for each in include)]

    def compile_source(path: Path) -> None:
        target = (build / path.relative_to(source)).with_suffix(".c.o")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*compiler(), *flags, str(path), "-o", str(target)], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_source, sorted(source.rglob("*.c"))))


def main() -> int:
    """Build both and compare."""
    parser = argparse.ArgumentParser(description="Compare the machine code of two commits, object by object.")
    parser.add_argument("old", metavar="OLD", help="a commit")
    parser.add_argument("new", metavar="NEW", nargs="?", help="a commit; the working tree, if there is none")
    options = parser.parse_args()
    folder = Path(git("rev-parse", "--show-toplevel")) / "build" / "objects"
    os.chdir(git("rev-parse", "--show-toplevel"))
    old, new = (objects_of(commit_of(name), folder) for name in (options.old, options.new))
    found = compare(old, new)
    print(*found, f"{len(old)} objects, {len(found)} differences", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
