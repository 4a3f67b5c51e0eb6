# SPDX-License-Identifier: BSD-3-Clause
"""The headers that providers were built with (tests/abi) and the present ones: what was there is where it was."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import ofipy

KEPT = sorted((Path(__file__).resolve().parents[1] / "abi").glob("provider_*"))

# What providers allocate, and the transfer; the rest keeps its size because it lies in arrays or within others. All
# other structs may grow at their ends.
FROZEN = {
    *("ofp_message", "ofp_remote_access", "ofp_watch", "ofp_timer", "ofp_offloaded", "ofp_transfer"),
    *("ofp_list", "ofp_operation", "ofp_param", "ofp_other_address", "ofp_region_device"),
    *("ofp_segment", "ofp_remote_segment"),
}
# Words without a meaning yet, where new fields may come.
SPARE = {"spare", "reserved"}

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
ENUM = re.compile(r"^enum \w+ \{(.*?)\};", re.MULTILINE | re.DOTALL)
# Sets of flags and counts of rows may grow: each side has its own.
CONSTANT = re.compile(r"^#define (OFP_\w+(?<!_FLAGS)(?<!_COUNT)) .", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = re.compile(r"\(\*(\w+)\)\(")
DECLARED = re.compile(r"(\w+)(?:\[\w+\])*(?:,|$)")


def fields(body: str) -> Iterator[tuple[str, list[str]]]:
    """Each declaration of a struct, with the names that it declares; those of unnamed unions are the struct's own."""
    for declaration in re.sub(r"\bunion \{|\}", "", body).split(";"):
        text = " ".join(declaration.split())
        if text:
            yield text, FUNCTION.findall(text)[:1] or DECLARED.findall(text)


def program(folder: Path) -> str:
    """Prints where each field is and what each constant says; compiles only where types are those of the folder."""
    headers = sorted(folder.glob("ofipy/*.h"))
    lines = []
    for header in headers:
        text = COMMENT.sub("", header.read_text())
        for struct, body in STRUCT.findall(text):
            lines.append(f'printf("sizeof {struct} %zu\\n", sizeof(struct {struct}));')
            for declaration, names in fields(body):
                for name in names:
                    if name in SPARE:
                        continue
                    field = f"__typeof__(((struct {struct} *)0)->{name})"
                    lines += [
                        f"{{ {declaration}; _Static_assert(__builtin_types_compatible_p(__typeof__({name}), {field}), "
                        f'"type of {struct}.{name}"); }}',
                        f'printf("{struct}.{name} %zu\\n", offsetof(struct {struct}, {name}));',
                    ]
        enumerators = (
            word for body in ENUM.findall(text) for word in re.findall(r"\bOFP_\w+(?=[ ,=]|$)", body)
        )
        for name in (*enumerators, *CONSTANT.findall(text)):
            lines.append(f'printf("{name} %lld\\n", (long long)({name}));')
    includes = "\n".join(f'#include "ofipy/{header.name}"' for header in headers)
    return f"#include <stdio.h>\n{includes}\nint main(void)\n{{\n" + "\n".join(lines) + "\nreturn 0;\n}\n"


def values(source: Path, include: str, folder: Path) -> dict[str, int]:
    """What the program prints when it is compiled with these headers."""
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(
        [*compiler, "-std=gnu11", f"-I{include}", str(source), "-o", str(folder / "values")], check=True
    )
    printed = subprocess.run([folder / "values"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: int(value) for name, value in (line.rsplit(" ", 1) for line in printed.splitlines())}


def moved(then: dict[str, int], now: dict[str, int]) -> list[str]:
    """What is not where it was, or does not say what it said."""
    return [
        f"{name}: {value} became {now[name]}"
        for name, value in then.items()
        if (
            now[name] < value
            if name.startswith("sizeof ") and name.split()[1] not in FROZEN
            else now[name] != value
        )
    ]


@pytest.mark.parametrize("kept", KEPT, ids=lambda folder: folder.name)
def test_tables_begin_with_the_kept_ones(kept: Path, tmp_path: Path) -> None:
    source = tmp_path / "values.c"
    source.write_text(program(kept))
    then = values(source, str(kept), tmp_path)
    # All were found: a struct of a provider's whole life, one of each kind of field, a constant and an enumerator.
    for name in (
        *(
            "ofp_endpoint_ops.progress",
            "ofp_message.provider_data",
            "ofp_region.published",
            "ofp_operation.tag",
        ),
        *("ofp_core.log", "OFP_KEY_SIZE", "OFP_EPEERLOST", "OFP_ROOM_ANNOUNCED"),
        *(f"sizeof {struct}" for struct in FROZEN),
    ):
        assert name in then
    assert moved(then, values(source, ofipy.get_include(), tmp_path)) == []


NAME = "int (*name)(struct ofp_endpoint *endpoint, void *address, size_t *length);"
MESSAGE = "uint64_t length;           /* of the payload, bytes */"
CHANGES = {
    "an entry in between": ("provider.h", NAME, f"int (*title)(void); {NAME}", "ofp_endpoint_ops.name: "),
    "a frozen struct": (
        "objects.h",
        "uint64_t spare[2];\n};\n\n/* Which",
        "};\n\n/* Which",
        "sizeof ofp_message: ",
    ),
    "a frozen struct's field": ("objects.h", MESSAGE, f"uint64_t width; {MESSAGE}", "ofp_message.length: "),
    "a constant": ("provider.h", "OFP_POST_DONE 1", "OFP_POST_DONE 2", "OFP_POST_DONE: 1 became 2"),
    "at the end": ("services.h", "};\n", "    int (*more)(void);\n};\n", ""),
    "a spare word": ("objects.h", "spare[2];\n};\n\n/* Which", "age, spare[1];\n};\n\n/* Which", ""),
    "an argument's name": ("provider.h", NAME, NAME.replace("length", "size"), ""),
}


def changed(folder: Path, header: str, before: str, after: str) -> Path:
    """A copy of the newest kept headers with a change."""
    shutil.copytree(KEPT[-1], folder)
    text = (folder / "ofipy" / header).read_text()
    assert before in text
    (folder / "ofipy" / header).write_text(text.replace(before, after, 1))
    return folder


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change: str, tmp_path: Path) -> None:
    *where, expected = CHANGES[change]
    source = tmp_path / "values.c"
    source.write_text(program(KEPT[-1]))
    then = values(source, str(KEPT[-1]), tmp_path)
    found = moved(then, values(source, str(changed(tmp_path / "changed", *where)), tmp_path))
    assert bool(found) == bool(expected)
    assert not expected or any(each.startswith(expected) for each in found)


def test_another_type_is_seen(tmp_path: Path) -> None:
    source = tmp_path / "values.c"
    source.write_text(program(KEPT[-1]))
    other = changed(
        tmp_path / "changed", "provider.h", NAME, NAME.replace("size_t *length", "uint32_t *length")
    )
    with pytest.raises(subprocess.CalledProcessError):
        values(source, str(other), tmp_path)
