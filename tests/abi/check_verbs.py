#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold providers/verbs/library against the real headers, those of a folder or of the system: check_verbs.py [FOLDER].

A program that prints size and offset of each member and the value of each constant of abi.h is compiled twice, with
abi.h and with the headers, and must print the same. Behind the headers the compiler compares the types of members and
the prototypes as well. Exit code 77 where there are no headers (Debian: libibverbs-dev, librdmacm-dev).
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "providers/verbs/library"
HEADERS = "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n"
# Constants that have a name of our own, as that of the headers is reserved.
RENAMED = {"VERBS_EXTENDED": "__VERBS_ABI_IS_EXTENDED"}
COMPILER = os.environ.get("CC", "cc").split()

# Made by a library alone, or handed in with their size: they may have more at their end, verbs_context at its front.
GROWING = {
    "struct ibv_comp_channel",
    "struct ibv_context",
    "struct ibv_cq",
    "struct ibv_device",
    "struct ibv_device_attr_ex",
    "struct ibv_mr",
    "struct ibv_port_attr",
    "struct ibv_qp",
    "struct ibv_srq",
    "struct rdma_addr",
    "struct rdma_cm_event",
    "struct rdma_cm_id",
    "struct rdma_event_channel",
    "struct verbs_context",
}

# Constants that have a name of our own, as that of the headers is reserved.
RENAMED = {"VERBS_EXTENDED": "__VERBS_ABI_IS_EXTENDED"}
COMPILER = os.environ.get("CC", "cc").split()

Member = tuple[str, str, str]  # "struct ibv_wc", "wr_id", type


def without_comments(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def constants(text: str) -> list[str]:
    """Names of all enumerators, and of those in RENAMED."""
    bodies = re.findall(r"enum \w*\s*\{([^}]*)\}", text)
    return [name for body in bodies for name in re.findall(r"[A-Z]\w+", body)] + list(RENAMED)


def declared(declaration: str) -> tuple[str, str]:
    """Name and type of a member: "int (*poll)(int most)", "char name[64]", "void *context"."""
    match = re.fullmatch(r"(.*?\(\*)(\w+)(\).*)|(.*?)(\w+)((?:\[\w+\])*)", declaration, flags=re.S)
    assert match, declaration
    before, name, behind = match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)
    return name, before + behind


def members(text: str) -> list[Member]:
    """All members but those that are `unused`, nested ones by their path."""
    result: list[Member] = []
    for outer, body in re.findall(r"^((?:struct|union) \w+) \{\n(.*?)^\};", text, flags=re.S | re.M):
        scopes: list[list[tuple[str, str]]] = [[]]
        for token in re.findall(r"(?:struct|union) \{|\} ?\w*;|[^;{}]+;", body):
            if token.endswith("{"):
                scopes.append([])
            elif token.startswith("}"):
                inner, name = scopes.pop(), token[1:-1].strip()
                if not name.startswith("unused"):
                    scopes[-1] += [(f"{name}.{path}" if name else path, kind) for path, kind in inner]
            else:
                name, kind = declared(token[:-1].strip())
                if not name.startswith("unused"):
                    scopes[-1].append((name, kind))
        result += [(outer, path, kind) for path, kind in scopes[0]]
    return result


def program(text: str) -> str:
    """What prints the facts, behind either header."""
    found = members(text)
    lines = [f'printf("{name} = %lld\\n", (long long){name});' for name in constants(text)]
    for outer, path, _ in found:
        place = f"offsetof({outer}, {path})"
        if outer == "struct verbs_context":
            place = f"sizeof({outer}) - {place}"
        lines.append(
            f'printf("{outer}.{path}: at %zu, %zu bytes\\n", {place}, sizeof((({outer} *)0)->{path}));'
        )
    for outer in dict.fromkeys(outer for outer, _, _ in found):
        if outer not in GROWING:
            lines.append(f'printf("{outer}: %zu bytes\\n", sizeof({outer}));')
    return "#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n" + "\n".join(lines) + "\n}\n"


def types(text: str, prototypes: str) -> str:
    """What only the compiler can compare; behind the real headers, some of which hide a function behind a macro."""
    lines = [f"#undef {name}" for name in re.findall(r"(\w+)\([^;]*\);", prototypes)]
    lines += [f"#define {ours} {theirs}" for ours, theirs in RENAMED.items()]
    lines.append('#include "library/prototypes.h"')
    for outer, path, kind in members(text):
        ours, theirs = f"__typeof__({kind})", f"__typeof__((({outer} *)0)->{path})"
        lines.append(
            f'_Static_assert(__builtin_types_compatible_p({ours}, {theirs}), "type of {outer}.{path}");'
        )
    return "\n".join(lines) + "\n"


def printed(source: str, name: str, folder: str, include: list[str]) -> list[str]:
    """Lines that the program prints."""
    file, binary = Path(folder) / f"{name}.c", Path(folder) / name
    file.write_text(source)
    flags = ["-std=gnu11", "-Wall", "-Werror", f"-I{ROOT / 'providers/verbs'}", "-o", str(binary)]
    subprocess.run([*COMPILER, *include, *flags, str(file)], check=True)
    return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout.splitlines()


def main() -> int:
    include = ["-isystem", sys.argv[1]] if len(sys.argv) > 1 else []
    if subprocess.run(
        [*COMPILER, *include, "-E", "-"], input=HEADERS, text=True, capture_output=True
    ).returncode:
        print("the headers of libibverbs and librdmacm are not installed")
        return 77
    text, prototypes = without_comments(LIBRARY / "abi.h"), without_comments(LIBRARY / "prototypes.h")
    facts = program(text)
    with tempfile.TemporaryDirectory() as folder:
        ours = printed('#include "library/abi.h"\n' + facts, "ours", folder, [])
        try:
            theirs = printed(HEADERS + types(text, prototypes) + facts, "theirs", folder, include)
        except subprocess.CalledProcessError:
            print("abi.h or prototypes.h differ from the headers, as the compiler says")
            return 1
    differences = list(difflib.unified_diff(theirs, ours, "headers", "abi.h", n=0, lineterm=""))
    if differences:
        print(*differences, sep="\n")
        return 1
    print(f"abi.h agrees with the headers of libibverbs and librdmacm: {len(ours)} facts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
