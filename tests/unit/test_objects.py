# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of machine code, on sources of a few lines."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import objects

ROOT = Path(__file__).resolve().parents[2]
CC = shlex.split(os.environ.get("CC", "cc"))

# Two functions of one shape, static data that names them, and calls of functions of other sources.
FIRST = """
extern int one(int), two(int);
static int small(int x) { return one(x) + 1; }
static int large(int x) { return two(x) + 1; }
int (*const table[])(int) = {small, large};
int begin(int x) { return one(x) * 3; }
int finish(int x) { return two(x) * 3; }
"""
SECOND = "int one(int x) { return x + 7; }\nint two(int x) { return x - 7; }\n"

pytestmark = pytest.mark.skipif(not shutil.which(CC[0]), reason="needs a C compiler")


def built(folder: Path, sources: Mapping[str, str], *flags: str) -> dict[str, objects.Object]:
    """The objects of these sources by their names."""
    folder.mkdir(exist_ok=True)
    found = {}
    for name, text in sources.items():
        source, target = folder / name, folder / f"{name}.o"
        source.write_text(text)
        subprocess.run([*CC, "-O2", "-fPIC", *flags, "-c", str(source), "-o", str(target)], check=True)
        found[target.name] = objects.read_object(target.read_bytes())
    return found


def differences(tmp_path: Path, old: Mapping[str, str], new: Mapping[str, str], *flags: str) -> list[str]:
    return objects.compare(built(tmp_path / "old", old, *flags), built(tmp_path / "new", new, *flags))


def changed(text: str, **names: str) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("flags", [(), ("-ffunction-sections",)])
def test_renamed_functions_and_comments_are_no_difference(tmp_path: Path, flags: tuple[str, ...]) -> None:
    names = {"one": "add_seven", "small": "call_small", "begin": "count_things", "table": "rows"}
    new = {"a.c": "/* Why. */\n" + changed(FIRST, **names), "b.c": changed(SECOND, **names)}
    assert not differences(tmp_path, {"a.c": FIRST, "b.c": SECOND}, new, *flags)


def test_changed_code_is_named_by_its_place(tmp_path: Path) -> None:
    new = {"a.c": FIRST, "b.c": changed(SECOND, **{"x - 7": "x - 8"})}
    (found,) = differences(tmp_path, {"a.c": FIRST, "b.c": SECOND}, new)
    assert found.startswith("b.c.o: the code differs from byte 0x")


def test_names_that_were_swapped_at_one_place_are_found(tmp_path: Path) -> None:
    new = {"a.c": changed(FIRST, **{"one(x) * 3": "two(x) * 3"}), "b.c": SECOND}
    found = differences(tmp_path, {"a.c": FIRST, "b.c": SECOND}, new)
    assert any("one is two here" in each for each in found)


def test_two_functions_in_the_wrong_rows_of_a_table_are_found(tmp_path: Path) -> None:
    new = {"a.c": changed(FIRST, **{"{small, large}": "{large, small}"}), "b.c": SECOND}
    found = differences(tmp_path, {"a.c": FIRST, "b.c": SECOND}, new)
    assert any(each.startswith("a.c.o: ") for each in found)


def test_another_place_of_the_same_object_is_found() -> None:
    def one(offset: int, place: int) -> objects.Object:
        return objects.Object((b"code",), (objects.Reference(".data", offset, 1, "", ("code 0", place)),), ())

    assert not objects.compare({"a": one(8, 16)}, {"a": one(8, 16)})
    wrong = ["a: the same code refers to other places of the object"]
    assert objects.compare({"a": one(8, 16)}, {"a": one(8, 32)}) == wrong
    assert objects.compare({"a": one(8, 16)}, {"a": one(0, 16)}) == wrong


def test_a_function_that_is_global_no_more_is_found(tmp_path: Path) -> None:
    old = {"a.c": FIRST, "b.c": SECOND}
    new = {"a.c": FIRST, "b.c": "__attribute__((used)) static " + SECOND}
    assert differences(tmp_path, old, new) == ["b.c.o: other functions are global"]


def test_a_renamed_file_is_found_by_its_code(tmp_path: Path) -> None:
    old = {"a.c": FIRST, "b.c": SECOND}
    assert not differences(tmp_path, old, {"a.c": FIRST, "c.c": SECOND})
    new = {"a.c": FIRST, "c.c": "int three(int x) { return x * x; }\n"}
    assert sorted(differences(tmp_path, old, new)) == [
        "b.c.o: no object of NEW has this code",
        "c.c.o: only in NEW",
    ]


def test_what_is_no_object_is_an_error() -> None:
    with pytest.raises(ValueError, match="no ELF object"):
        objects.read_object(b"#include <stdio.h>\n")


@pytest.mark.skipif(
    not shutil.which("meson") or not shutil.which("git"), reason="meson or git is not installed"
)
def test_two_commits_and_the_working_tree(tmp_path: Path) -> None:
    def write(**names: str) -> None:
        for name, text in (("a.c", FIRST), ("b.c", SECOND)):
            (tmp_path / name).write_text(changed(text, **names))

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, stdout=subprocess.PIPE)

    def run(*arguments: str) -> tuple[int, list[str]]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "CC": shlex.join(CC)}
        ran = subprocess.run(
            [sys.executable, "-m", "tests.objects", *arguments],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        return ran.returncode, ran.stdout.splitlines()

    (tmp_path / ".gitignore").write_text("build\n")
    (tmp_path / "meson.options").write_text("option('python', type: 'boolean')\n")
    (tmp_path / "meson.build").write_text("project('tiny', 'c')\nshared_library('tiny', 'a.c', 'b.c')\n")
    extension = tmp_path / objects.EXTENSION / "folder"
    extension.mkdir(parents=True)
    (extension / "module.c").write_text("#include <Python.h>\nint number(void) { return 7; }\n")
    write()
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    write(one="add_seven")
    git("commit", "-q", "-a", "-m", "rename")
    assert run("HEAD^", "HEAD") == (0, ["3 objects, 0 differences"])
    (extension / "module.c").write_text("#include <Python.h>\nint number(void) { return 8; }\n")
    code, lines = run("HEAD")
    assert (code, lines[-1]) == (1, "3 objects, 1 differences")
    assert lines[0].startswith("ofipy/requests/folder/module.c.o: the code differs")
