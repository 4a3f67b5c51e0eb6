# SPDX-License-Identifier: BSD-3-Clause
"""The program of the how-to page prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "dask-shuffle.md"


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.timeout(180)
def test_shuffle(tmp_path: Path) -> None:
    program = tmp_path / "shuffle.py"
    program.write_text(block("python"))
    ran = subprocess.run(
        [sys.executable, "-P", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == block("text")
