# SPDX-License-Identifier: BSD-3-Clause
"""Reads C without a compiler: the functions that a source defines, its comments, its lines of code and its checks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A definition of a function."""

    name: str
    line: int
    static: bool


STRING_OR_COMMENT = re.compile(
    r"""/\*.*?\*/ | //(?:\\\n|[^\n])* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' """, re.DOTALL | re.VERBOSE
)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
NAME_AND_ARGUMENTS = re.compile(r"\b([A-Za-z_]\w*)\s*(\()")
# They have parentheses, and are not what is defined.
NO_FUNCTIONS = frozenset(
    ("__attribute__", "_Alignas", "__typeof__", "typeof", "_Static_assert", "__declspec", "_Atomic")
)


def blanked(text: str) -> str:
    """White space of the same length and lines."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text: str) -> str:
    """The same text with comments, and the contents of strings, as white space; every line stays where it is."""

    def blank(found: re.Match[str]) -> str:
        part = found.group()
        return blanked(part) if part[0] == "/" else part[0] + blanked(part[1:-1]) + part[-1]

    return STRING_OR_COMMENT.sub(blank, text)


def without_directives(text: str) -> str:
    """The same text without lines of the preprocessor, and so without the bodies of macros."""
    return PREPROCESSOR.sub(lambda found: blanked(found.group()), text)


def functions(source: str) -> list[Function]:
    """The functions that a source defines, in its order. Names in capitals are macros, and left out."""
    text = without_directives(without_comments(source))
    lines = [found.start() for found in re.finditer("\n", text)]
    found = []
    for start, head in heads(text):
        if (name := defined_name(head)) and not name[0].isupper():
            line = bisect_left(lines, start + name[1]) + 1
            found.append(Function(name[0], line, re.search(r"\bstatic\b", head) is not None))
    return found


def heads(text: str) -> Iterator[tuple[int, str]]:
    """Where each block outside of all others begins its declaration, and the text before its brace."""
    depth, start = 0, 0
    for found in re.finditer("[{};]", text):
        match found.group():
            case "{":
                if depth == 0:
                    yield start, text[start : found.start()]
                depth += 1
            case "}":
                depth -= 1
        if depth == 0:
            start = found.end()


def defined_name(head: str) -> tuple[str, int] | None:
    """The name that the text before a brace defines as a function, and where in the text it stands."""
    position = 0
    while found := NAME_AND_ARGUMENTS.search(head, position):
        end = closing(head, found.start(2))
        if found.group(1) not in NO_FUNCTIONS:
            # An initializer, and a type that is a structure, have no arguments or something behind them.
            behind = re.sub(r"__attribute__\s*\(\(.*\)\)", "", head[end:], flags=re.DOTALL)
            return (
                None if "=" in head[: found.start()] or behind.strip() else (found.group(1), found.start(1))
            )
        position = end
    return None


def closing(text: str, start: int) -> int:
    """Where the parenthesis that opens at ``start`` has been closed."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place + 1
    return len(text)


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of each ``/* */`` comment, without licences and rulers."""
    for found in STRING_OR_COMMENT.finditer(source):
        if found.group().startswith("/*"):
            text = " ".join(re.sub(r"^\s*\*+", "", line) for line in found.group()[2:-2].splitlines())
            text = " ".join(text.split())
            if re.search(r"\w", text.replace("-", "")) and "SPDX-License-Identifier" not in text:
                yield source.count("\n", 0, found.start()) + 1, text.lstrip("- ")


def code_lines(source: str) -> int:
    """Lines that are neither empty nor comment."""
    return sum(1 for line in without_comments(source).splitlines() if line.strip())


def checks(source: str) -> list[str]:
    """The conditions that a source checks, but for those that only tell NULL from a pointer."""
    text = without_directives(without_comments(source))
    conditions = (
        text[found.end() : closing(text, found.end() - 1) - 1].strip()
        for found in re.finditer(r"\bOFPI?_CHECK\s*\(", text)
    )
    return [each for each in conditions if not is_null_test(each)]


def is_null_test(condition: str) -> bool:
    operand = r"!*\s*[\w.>\[\]-]+"
    return (
        re.fullmatch(rf"{operand}\s*[!=]=\s*NULL|NULL\s*[!=]=\s*{operand}|!*\s*\w+", condition.strip())
        is not None
    )
