# SPDX-License-Identifier: BSD-3-Clause
"""Every message that the public API can raise, with its remedy, out of the sources: ``python -m tests.error_messages``.

It writes ``docs/reference/messages-of-errors.md``, to be read as text. Of Python these are the exceptions that are
made in ``ofipy``; of C the texts that the core and the providers leave, whose class follows from the code beside them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import ofipy
from ofipy._base import binding

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "messages-of-errors.md"

HEAD = """<!-- SPDX-License-Identifier: BSD-3-Clause -->
<!-- Written by `python -m tests.error_messages`; a test fails while it is stale. -->
# Every message

This page lists the messages of all errors. `‹name›` and `…` stand for values. The text of an error begins with the
operation, the peer and the provider. The message follows. If the message does not say what to do, a remedy in brackets
ends the text:

```text
tsend with tcp://192.0.2.2:7471 over tcp: the peer has another key than this side
(set OFIPY_AUTH_KEY_FILE to the same one)
```

The page [Errors](errors.md) says what each class means.
"""

KINDS = {
    name
    for name in ofipy.__all__
    if isinstance(kind := getattr(ofipy, name), type) and issubclass(kind, ofipy.FabricError)
}
PYTHON = {
    "Opening, addresses and settings": ("_base", "_discovery"),
    "Objects": ("_objects",),
    "Memory": ("_memory",),
    "Operations": ("_operations",),
    "Requests, queues and counters": ("_completion",),
    "Jobs": ("jobs",),
    "Executor": ("executor",),
    "Dask": ("dask",),
    "Measuring": ("measure",),
}
C = {
    "The core": ("native/src", "native/address", "native/meet", "native/proof", "native/rdm"),
    "Hooks": ("native/hooks",),
    "link": ("native/link",),
    "shm": ("providers/shm",),
    "tcp": ("providers/tcp",),
    "verbs": ("providers/verbs",),
    "ofi": ("providers/ofi",),
}


def spoken(node: ast.expr | None) -> list[str]:
    """What a text can be, with `‹name›` or `…` for values; several where the source chooses."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            texts = [""]
            for value in values:
                texts = [text + each for text in texts for each in (spoken(value) or ["…"])]
            return texts
        case ast.FormattedValue(value=ast.IfExp() as chosen):
            return spoken(chosen) or ["…"]
        case ast.FormattedValue(value=ast.Name(id=name)) | ast.FormattedValue(value=ast.Attribute(attr=name)):
            return [f"‹{name}›"]
        case ast.FormattedValue():
            return ["…"]
        case ast.IfExp(body=body, orelse=other):
            return spoken(body) + spoken(other)
        case ast.BinOp(left=left, right=right):
            return [one + other for one in spoken(left) or ["…"] for other in spoken(right) or ["…"]]
    return []


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


class Constants(ast.NodeTransformer):
    """Puts the texts that a module gives names to where these names stand."""

    def __init__(self, module: ast.Module) -> None:
        assigned = [node for node in module.body if isinstance(node, ast.Assign)]
        self.texts = {
            node.targets[0].id: node.value
            for node in assigned
            if isinstance(node.targets[0], ast.Name) and spoken(node.value)
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.texts.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def made(module: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Class, message and remedy of each exception that a module makes."""
    for node in ast.walk(Constants(module).visit(module)):
        if isinstance(node, ast.Call) and (name := name_of(node)) in KINDS | {"failure"}:
            keywords = {each.arg: each.value for each in node.keywords}
            text = (
                keywords.get("text") if name == "failure" else next(iter(node.args), keywords.get("message"))
            )
            remedies = spoken(keywords.get("remedy")) or [""]
            for said in spoken(text):
                yield ("by its code" if name == "failure" else name), said, " / ".join(remedies)
        if isinstance(node, ast.Return | ast.Assign) and isinstance(node.value, ast.Tuple):
            yield from explained(node.value)


def explained(pair: ast.Tuple) -> Iterator[tuple[str, str, str]]:
    """A message with its remedy, or None, as a pair: how refused operations are explained."""
    if len(pair.elts) != 2 or not isinstance(pair.elts[0], ast.JoinedStr | ast.Constant):
        return
    text, remedy = pair.elts
    if not isinstance(remedy, ast.JoinedStr) and not (
        isinstance(remedy, ast.Constant) and isinstance(remedy.value, str | None)
    ):
        return
    for said in spoken(text):
        if " " in said:
            yield "by its code", said, " / ".join(spoken(remedy))


LITERAL = r'"(?:[^"\\]|\\.)*"'
TEXT = rf"({LITERAL}(?:\s*(?:{LITERAL}|PRI\w+))*)"
TEXTS = re.compile(rf"\b(?:snprintf|refuse\w*)\(\s*(?:text|why|reason)\b[^;\"]*?{TEXT}", re.DOTALL)
# Those that are chosen and handed on, as sentences: a word or two is the name of a state.
CHOSEN = re.compile(
    rf"(?:\bwhy = |\.text = |\w_(?:connection_end|peer_lost|peer_absent)\([^;\"]*?|\[[A-Z_]+\] =\s*\(?){TEXT}",
    re.DOTALL,
)
# Clauses that several texts of one file share.
MACRO = re.compile(rf"^#define (\w+) ({LITERAL})$", re.MULTILINE)
CONVERSION = re.compile(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z]")
ESCAPES = {r"\"": '"', r"\\": "\\", r"\n": " "}


def left(source: str) -> Iterator[str]:
    """The texts that a file of C leaves for the user."""
    for name, literal in MACRO.findall(source):
        source = re.sub(rf"\b{name}\b", lambda _, literal=literal: literal, source)
    chosen = (match for match in CHOSEN.finditer(source) if len(match[1].split()) > 2)
    for match in (*TEXTS.finditer(source), *chosen):
        joined = re.sub(r'"\s*"', "", re.sub(r"PRI\w+", '""', re.sub(r'"\s*PRI\w+\s*"', "d", match[1])))
        for literal in re.findall(LITERAL, joined):
            said = literal[1:-1]
            for escape, meant in ESCAPES.items():
                said = said.replace(escape, meant)
            said = CONVERSION.sub("…", said).replace("%%", "%").strip()
            if len(re.findall(r"[a-z]{2,}", said)) > 1:
                yield said


def coded() -> Iterator[tuple[str, str, str]]:
    """What a code alone says, where it has a remedy."""
    for code, remedy in binding._REMEDIES.items():
        yield binding._KINDS[code].__name__, str(binding.failure(code).message), remedy


def repeated(*texts: str) -> set[str]:
    """The clauses of at least three words, or of a setting's name, that a message and its remedy say more than once."""
    whole = " ".join("; ".join(texts).split())
    clauses = [each.strip().lower() for each in re.split(r"[;:,()]|\. | or | and | / ", whole)]
    long = {each for each in clauses if len(each.split()) > 2}
    return {each for each in long if whole.lower().count(each) > 1}


def cell(text: str) -> str:
    return (
        " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*").replace("`", "'")
    )


def table(title: str, rows: set[tuple[str, str, str]]) -> str:
    lines = [
        f"| {cell(text)} | {cell(remedy)} | {f'`{kind}`' if kind in KINDS else kind} |"
        for kind, text, remedy in sorted(rows, key=lambda row: (row[1], row))
    ]
    return "\n".join([f"### {title}\n", "| message | what to do | class |", "|---|---|---|", *lines, ""])


def page() -> str:
    parts = [HEAD, "## From Python\n"]
    for title, places in PYTHON.items():
        rows = set()
        for place in places:
            start = ROOT / "ofipy" / place
            for file in [start] if start.suffix else sorted(start.rglob("*.py")):
                rows.update(made(ast.parse(file.read_text())))
        if rows:
            parts.append(table(title, rows))
    parts.append(table("By a code alone", set(coded())))
    parts.append(
        "## From the core and the providers\n\nThe class of these errors depends on their [code](errors.md#codes).\n"
    )
    for title, places in C.items():
        texts = {
            said
            for place in places
            for file in sorted((ROOT / place).rglob("*.c"))
            for said in left(file.read_text())
        }
        if texts:
            parts.append("\n".join([f"### {title}\n", *(f"- {cell(said)}" for said in sorted(texts)), ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
