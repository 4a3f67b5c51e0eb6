# SPDX-License-Identifier: BSD-3-Clause
"""The patterns of the guides as programs, and the same over others, which are kept beside this file."""

import ast
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
RIVALS = Path(__file__).parent / "rivals"

JOBS = (
    "ring-all-reduce",
    "scatter-and-gather",
    "parameter-server",
    "work-queue",
    "halo-exchange",
    "stream-of-arrays",
)
"""Pages with one program, which a launcher starts several times."""
PAIRS = ("request-and-reply",)
"""Pages with a server and a client."""

_BLOCK = re.compile(r"```(\w+)\n(?:# (\w+\.py)\n)?(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """What stands on a page of a pattern."""

    programs: dict[str, str]
    command: str
    output: str


def read(name: str) -> Page:
    blocks = _BLOCK.findall((PAGES / f"{name}.md").read_text())
    commands = [text.strip() for kind, _, text in blocks if kind == "sh"]
    return Page(
        {file: text for kind, file, text in blocks if kind == "python"},
        commands[0] if commands else "",
        next(text for kind, _, text in blocks if kind == "text"),
    )


def count(*programs: str) -> int:
    """Lines of code after formatting, without blanks, comments, docstrings and imports."""
    formatter = shutil.which("ruff")
    if formatter is None:
        pytest.skip("the formatter ruff is not installed")
    return sum(_count(_format(formatter, program)) for program in programs)


def _format(formatter: str, program: str) -> str:
    settings = ["--isolated", "--line-length", "110", "--stdin-filename", "program.py", "-"]
    return subprocess.run(
        [formatter, "format", *settings], input=program, capture_output=True, text=True, check=True
    ).stdout


def _count(program: str) -> int:
    beside: set[int] = set()
    for node in ast.walk(ast.parse(program)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            beside.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(program.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in beside
        for number, line in lines
    )
